// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Differences between ranks are rejected on all ranks before the first step, with an error that names the ranks and the
// difference. The communicator remains usable.
#include "pipeline/model.hpp"
#include "schedule/schedules.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/barrier.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/fingerprint.hpp>
#include <hocket/schedule/lower/lower.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace pipeline_test;
using hocket_test::on_ranks;
using hocket_test::thread_rank;
namespace pipeline = hocket::pipeline;
using hocket::errc;

namespace {

/// Checks that `make` fails with invalid_argument and a message that contains `says`.
template <class Make>
void refuses(thread_rank& me, const std::string& says, Make make) {
  const auto found = me.expect(errc::invalid_argument, make);
  const std::string text = found ? found->what() : "";
  me.check(text.find(says) != std::string::npos, [&] { return "the message lacks '" + says + "': " + text; });
}

void make_executor(thread_rank& me, const schedule& plan) {
  std::vector<layer> own = layers_of(plan, me.rank());
  pipeline::executor run(me.comm(), plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
  run.run();
}

/// A stage with the given input and output sizes.
template <class In, class Out = In>
struct shaped_stage {
  using input_type = In;
  using output_type = Out;
  std::size_t takes = 0;
  std::size_t gives = 0;
  std::size_t input_size() const { return takes; }
  std::size_t output_size() const { return gives; }
  void forward(int, std::span<const In>, std::span<Out>) {}
  void input_gradient(int, std::span<const In>, std::span<const Out>, std::span<In>) {}
  void weight_gradient(int, std::span<const In>, std::span<const Out>) {}
};

}  // namespace

TEST_CASE("schedules that differ between ranks are rejected on every rank, and the error names a rank that differs") {
  const schedule plan = schedules::one_forward_one_backward(3, 6);
  const std::string begins = "all ranks must pass the same schedule, but passed different schedules: ";
  struct trial {
    schedule other;
    std::string says;
  };
  const std::vector<trial> trials = {
      {schedules::gpipe(3, 6),
       "rank 0 has one_forward_one_backward of 6 microbatches and 3 stages, rank 2 has gpipe of 6 microbatches and 3 "
       "stages, in another "
       "order"},
      {schedules::one_forward_one_backward(3, 7), "rank 2 has one_forward_one_backward of 7 microbatches and 3 stages"},
      {schedules::interleaved(3, 6, 2), "rank 2 has interleaved of 6 microbatches and 6 stages"},
  };
  on_ranks(3, [&](thread_rank& me) {
    for (const trial& each : trials) {
      refuses(me, begins, [&] { make_executor(me, me.rank() == 2 ? each.other : plan); });
      refuses(me, each.says, [&] { make_executor(me, me.rank() == 2 ? each.other : plan); });
    }
    schedule renamed = plan;
    renamed.rename("mine");
    make_executor(me, me.rank() == 1 ? renamed : plan);
    make_executor(me, me.rank() == 1 ? schedules::lower(plan) : plan);
  });
}

TEST_CASE("a rank with an invalid schedule reports the fault, and keeps no other rank waiting") {
  const schedule plan = schedules::one_forward_one_backward(3, 6);
  schedule damaged = plan;
  damaged.of(1).pop_back();
  on_ranks(3, [&](thread_rank& me) {
    refuses(me,
            me.rank() == 1 ? "work is missing"
                           : "rank 0 has one_forward_one_backward of 6 microbatches and 3 stages, rank 1 has",
            [&] { make_executor(me, me.rank() == 1 ? damaged : plan); });
    refuses(me, me.rank() == 1 ? "the schedule is for 2 ranks, the communicator has 3" : "different schedules",
            [&] { make_executor(me, me.rank() == 1 ? schedules::gpipe(2, 2) : plan); });
    hocket::barrier(me.comm());
    make_executor(me, plan);
  });
}

TEST_CASE("equal schedules have equal fingerprints, and different schedules have different fingerprints") {
  std::map<std::uint64_t, schedule> found;
  for_every_schedule(
      [&](const schedule& plan, const sizes&) {
        const auto& other = found.emplace(schedules::fingerprint(plan), plan).first->second;
        const bool equal = other.rows == plan.rows && other.microbatches == plan.microbatches;
        if (!equal || other.stages() != plan.stages()) FAIL_CHECK(plan.name() << " as " << other.name());
      },
      5, 12);
  CHECK(found.size() > 500);
  schedule plan = schedules::gpipe(2, 2);
  const std::uint64_t before = schedules::fingerprint(plan);
  plan.rename("other");
  CHECK(schedules::fingerprint(plan) == before);
  std::swap(plan.of(0)[0], plan.of(0)[1]);
  CHECK(schedules::fingerprint(plan) != before);
}

TEST_CASE("the two copies of a stage in two directions must have equal sizes") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::dual_pipe(2, 4);
    // Rank 1 uses a larger size at the boundary: in both directions, producer and consumer of a copy disagree with
    // those of the other copy.
    const std::size_t width = me.rank() == 0 ? 4 : 512;
    shaped_stage<double> first{0, width};
    shaped_stage<double> last{width, 0};
    refuses(me,
            "the two copies of a stage must be alike: stage 0 on rank 0 gives 32 bytes (4 elements of 8) per "
            "microbatch, stage 0 on rank 1 gives 4096 bytes (512 elements of 8)",
            [&] {
              pipeline::executor run(me.comm(), plan, {first, last});
            });

    // In each direction, stage 0 gives what stage 1 takes: only the copies differ.
    shaped_stage<double> here{0, me.rank() == 0 ? std::size_t{4} : 512};
    shaped_stage<double> there{me.rank() == 0 ? std::size_t{512} : 4, 0};
    refuses(me, "the two copies of a stage must be alike: stage 0 on rank 0 gives 32 bytes", [&] {
      pipeline::executor run(me.comm(), plan, {here, there});
    });
    shaped_stage<double> alike{0, 4};
    shaped_stage<double> alike_last{4, 0};
    pipeline::executor run(me.comm(), plan, {alike, alike_last});
    run.run();
  });
}

TEST_CASE("elements of another type are rejected, even if they have the same size") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::gpipe(2, 2);
    const auto refuses_second = [&](auto second, const std::string& says) {
      shaped_stage<float> first{0, 2};
      refuses(me, says, [&] {
        if (me.rank() == 0) pipeline::executor run(me.comm(), plan, {first});
        else pipeline::executor run(me.comm(), plan, {second});
      });
    };
    const std::string gives =
        "stage 0 on rank 0 gives 8 bytes (2 elements of 4) per microbatch, stage 1 on rank 1 takes ";
    refuses_second(shaped_stage<double>{1, 0}, gives + "8 bytes (1 elements of 8)");
    refuses_second(shaped_stage<std::int32_t>{2, 0}, gives + "8 bytes (2 elements of 4), of another element type");
    shaped_stage<float, double> first{0, 0};  // without elements, the type does not matter
    shaped_stage<float> last{0, 0};
    if (me.rank() == 0) pipeline::executor(me.comm(), plan, {first}).run();
    else pipeline::executor(me.comm(), plan, {last}).run();
  });
}

TEST_CASE("sizes larger than any memory are rejected on all ranks") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::gpipe(2, 2);
    for (const std::size_t size : {~std::size_t{0}, std::size_t{1} << 61, (std::size_t{1} << 39) + 1}) {
      shaped_stage<double> first{0, size}, last{size, 0};
      refuses(me, "stage 0 on rank 0 gives " + std::to_string(size) + " elements per microbatch, more than any memory",
              [&] {
                if (me.rank() == 0) pipeline::executor run(me.comm(), plan, {first});
                else pipeline::executor run(me.comm(), plan, {last});
              });
    }
  });
}

namespace {

/// Checks the alignment of its buffers.
struct looking_stage {
  using input_type = float;
  using output_type = float;
  std::size_t takes = 0;
  std::size_t gives = 0;
  bool aligned = true;
  std::size_t input_size() const { return takes; }
  std::size_t output_size() const { return gives; }
  void look(const float* at) { aligned = aligned && reinterpret_cast<std::uintptr_t>(at) % 64 == 0; }
  void forward(int, std::span<const float> in, std::span<float> out) {
    look(in.data());
    look(out.data());
  }
  void backward(int, std::span<const float>, std::span<const float> out_gradient, std::span<float> in_gradient) {
    look(out_gradient.data());
    look(in_gradient.data());
  }
};

struct alignas(128) wide {
  float values[32];
};
static_assert(pipeline::stage<shaped_stage<float>>);
static_assert(!pipeline::stage<shaped_stage<wide>>);  // no buffer is aligned to more than a cache line

}  // namespace

TEST_CASE("buffers begin at a cache line") {
  on_ranks(3, [](thread_rank& me) {
    for (const std::size_t size : {1U, 3U, 5U, 100U}) {
      looking_stage own{me.rank() == 0 ? 0 : size, me.rank() == 2 ? 0 : size};
      pipeline::executor run(me.comm(), schedules::one_forward_one_backward(3, 5), {own});
      run.run();
      me.check(own.aligned, "a buffer is not aligned");
    }
  });
}

namespace {

/// A stage that has a number. It throws from `input_size` or `stage_number` if this is requested.
struct knowing_stage : shaped_stage<double> {
  int number = 0;
  bool has_no_sizes = false;
  bool has_no_number = false;
  int stage_number() const {
    if (has_no_number) throw std::out_of_range("no such layer");
    return number;
  }
  std::size_t input_size() const {
    if (has_no_sizes) throw std::length_error("the model was not read");
    return takes;
  }
};

std::deque<knowing_stage> knowing_stages_of(const schedule& plan, int rank) {
  std::deque<knowing_stage> own;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (!plan.placement.holds(rank, stage)) continue;
    own.emplace_back();
    own.back().takes = stage == 0 ? 0 : 2;
    own.back().gives = stage + 1 == plan.stages() ? 0 : 2;
    own.back().number = stage;
  }
  return own;
}

/// Checks that `make` fails with `code` and a message that names this file and `line`.
template <class Make>
void tells_line(thread_rank& me, hocket::errc code, std::uint_least32_t line, Make make) {
  const auto found = me.expect(code, make);
  const std::string expected = "agreement.test.cpp:" + std::to_string(line) + "]";
  const std::string text = found ? found->what() : "";
  me.check(text.find(expected) != std::string::npos, [&] { return "the message lacks '" + expected + "': " + text; });
}

}  // namespace

TEST_CASE("stages in the wrong order are rejected if they have numbers, even if their sizes are equal") {
  const schedule plan = schedules::interleaved(2, 4, 3);
  on_ranks(2, [&](thread_rank& me) {
    const auto make = [&](bool swapped) {
      std::deque<knowing_stage> own = knowing_stages_of(plan, me.rank());
      std::vector<pipeline::any_stage> stages(own.begin(), own.end());
      if (swapped) std::swap(stages[0], stages[1]);  // stages 1 and 3 of rank 1, which have equal sizes
      pipeline::executor run(me.comm(), plan, stages);
      run.run();
    };
    refuses(me,
            me.rank() == 1 ? "rank 1 was given stage 3 in the place of stage 1: list the stages of a rank in the order "
                             "of their numbers"
                           : "rank 1 has stages that do not fit the schedule",
            [&] { make(me.rank() == 1); });
    make(false);
  });
}

TEST_CASE("an exception from a stage's sizes or number reaches every rank immediately") {
  for (const int ranks : {2, 3, 5}) {
    for (const bool sizes : {true, false}) {
      const schedule plan = schedules::one_forward_one_backward(ranks, 4);
      on_ranks(ranks, [&](thread_rank& me) {
        me.comm().set_timeout(std::chrono::seconds(60));  // longer than the test may take
        std::deque<knowing_stage> own = knowing_stages_of(plan, me.rank());
        (sizes ? own[0].has_no_sizes : own[0].has_no_number) = me.rank() == 1;
        const auto make = [&] { pipeline::executor run(me.comm(), plan, {own[0]}); };
        if (me.rank() != 1) {
          const auto found = me.expect(errc::aborted, make);
          const std::string says = sizes ? "stage 1 failed when it was asked for its sizes: the model was not read"
                                         : "stage 1 failed when it was asked for its number: no such layer";
          me.check(found && std::string(found->what()).find(says) != std::string::npos,
                   [&] { return "the message lacks '" + says + "': " + (found ? found->what() : ""); });
          return;
        }
        bool thrown = false;
        try {
          make();
        } catch (const std::length_error&) {
          thrown = sizes;
        } catch (const std::out_of_range&) {
          thrown = !sizes;
        }
        me.check(thrown, "the exception did not reach the caller on its rank");
      });
    }
  }
}

namespace {

/// A schedule of two ranks that uses 4 times `microbatches` tags, because rank 0 receives gradients in another order
/// than rank 1 sends them.
schedule with_many_tags(int microbatches) {
  schedule plan = schedules::lower(schedules::gpipe(2, microbatches));
  schedules::row late;
  std::erase_if(plan.of(0), [&](const schedules::schedule_action& each) {
    if (each.first.kind == schedules::task_kind::receive_backward) late.push_back(each);
    return each.first.kind == schedules::task_kind::receive_backward;
  });
  plan.of(0).insert(plan.of(0).begin(), late.rbegin(), late.rend());
  return plan;
}

}  // namespace

TEST_CASE("tags wrap around, but never to those of an executor that still exists on some rank") {
  const schedule few = schedules::one_forward_one_backward(2, 4);
  const schedule half = with_many_tags(8192);  // 32768 of 65536 tags
  on_ranks(2, [&](thread_rank& me) {
    using executor = pipeline::executor<hocket::local::domain>;
    const auto make = [&](const schedule& plan, std::deque<knowing_stage>& own) {
      own = knowing_stages_of(plan, me.rank());
      return std::make_unique<executor>(me.comm(), plan, std::vector<pipeline::any_stage>{own[0]});
    };
    std::deque<knowing_stage> own[3];
    std::unique_ptr<executor> oldest = make(few, own[0]);
    std::unique_ptr<executor> next = make(half, own[1]);
    const std::string says = "use 32769 of its 65536 tags, and this one needs 32768: destroy the oldest executor first";
    refuses(me, says, [&] { make(half, own[2]); });
    next.reset();  // tags in the middle do not help
    refuses(me, says, [&] { make(half, own[2]); });
    if (me.rank() == 0) oldest.reset();  // rank 1 still has its executor
    refuses(me, says, [&] { make(half, own[2]); });
    oldest.reset();
    for (int i = 0; i < 5; ++i) {  // now tags wrap around
      make(half, own[2]);
      make(with_many_tags(16), own[2])->run();
      make(few, own[2])->run();
    }
    oldest = make(half, own[0]);
    next = make(half, own[1]);
    refuses(me, "use 65536 of its 65536 tags, and this one needs 1", [&] { make(few, own[2]); });
  });
}

TEST_CASE("errors of an executor name the caller's line") {
  on_ranks(2, [](thread_rank& me) {
    const schedule plan = schedules::gpipe(2, 2);
    std::deque<knowing_stage> own = knowing_stages_of(plan, me.rank());
    tells_line(me, errc::invalid_argument, __LINE__ + 1,
               [&] { pipeline::executor run(me.comm(), schedules::gpipe(3, 2), {own[0]}); });
    pipeline::executor run(me.comm(), plan, {own[0]});
    run.run();
    me.comm().set_timeout(std::chrono::milliseconds(200));
    if (me.rank() == 0) tells_line(me, errc::timeout, __LINE__, [&] { run.run(); });
    if (me.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(400));
  });
}
