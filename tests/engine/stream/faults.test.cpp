// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Any failure on one rank, at any time, is reported there, except those in transport/cuda_ipc/silent_calls.hpp. All
// ranks end in time, with an error that names the culprit; results without an error are right; and no memory is freed
// that a stream may still access.
#include "engine/stream/device_ranks.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "support/text.hpp"

#include <hocket/engine/stream/operation.hpp>
#include <hocket/kernel/device/stream_kernel.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/ring_all_reduce.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;
namespace plan = hocket::plan;
using hocket::errc;

namespace {

constexpr std::size_t size = 100;

/// After a failure streams drain in no order, so that the thread sanitizer would report races without a meaning.
#if defined(__SANITIZE_THREAD__)
constexpr bool races_are_told = true;
#else
constexpr bool races_are_told = false;
#endif

struct verdict {
  stage hit = stage::none;  ///< stage of the driver's fault
  stage at = stage::none;   ///< stage of the rank's first failure
  hocket::failure failure;
  bool right = false;
};

/// True if `so` is true on all ranks. Collective.
bool all_say(device_rank& me, bool so) {
  const std::byte own[] = {std::byte{so}};
  for (const std::vector<std::byte>& each : me.exchange()(own)) {
    if (each != std::vector<std::byte>{std::byte{1}}) return false;
  }
  return true;
}

/// A kernel that is loaded when it is bound.
constexpr hocket::kernel::stream_kernel loaded_kernel = [] {
  hocket::kernel::stream_kernel made = queue_kernel_of<std::plus<>, float>;
  made.load = [](std::size_t) { return hocket::failure(); };
  return made;
}();

/// Runs all stages of a rank: three operations, one of them with scratch, and one with scratch that peers read; and one
/// that is bound after another was destroyed.
verdict life_of(device_rank& me, std::chrono::milliseconds patience = std::chrono::seconds(10),
                const std::function<void()>& before_enqueueing = {}) {
  verdict end;
  const auto went = [&](stage at, hocket::failure found) {
    if (end.hit == stage::none && me.driver().has_failed()) end.hit = at;
    if (found && !end.failure) {
      end.at = at;
      end.failure = std::move(found);
    }
    return !end.failure;
  };
  const std::plus<> op;
  if (went(stage::joining, me.join(std::chrono::seconds(1)))) {
    float* const in = me.upload(samples<float>(me.rank(), size));
    float* const out = me.allocate<float>(size);
    float* const doubled = me.allocate<float>(size);
    hocket::detail::stream_binding what{.plan = plan::two_shot{},
                                        .block_elements = size,
                                        .element_kernel = &loaded_kernel,
                                        .operation = &op,
                                        .in = reinterpret_cast<ipc::address>(in),
                                        .out = reinterpret_cast<ipc::address>(out)};
    went(stage::own, {});
    std::unique_ptr<device_operation> first, second, third, fourth;
    bool good = went(stage::binding, me.bind(what, first));
    what.plan = plan::one_shot{};
    what.in = what.out;
    good = good && went(stage::binding, me.bind(what, second));
    what.plan = plan::recursive_doubling{};
    what.in = reinterpret_cast<ipc::address>(in);
    what.out = reinterpret_cast<ipc::address>(doubled);
    good = good && went(stage::binding, me.bind(what, third));
    const ipc::stream_handle stream = good ? me.stream() : nullptr;
    if (good && before_enqueueing) before_enqueueing();
    went(stage::own, {});
    good = good && went(stage::enqueueing, first->enqueue(stream));
    good = good && went(stage::enqueueing, second->enqueue(stream));
    good = good && went(stage::enqueueing, third->enqueue(stream));
    good = good && went(stage::finishing, third->finish(soon(patience)));
    good = good && went(stage::finishing, me.group().finish(stream, soon(patience)));
    if (good) {
      end.right = true;
      for (std::size_t i = 0; i < size; ++i) {
        float sum = sample<float>(0, i);
        for (int rank = 1; rank < me.size(); ++rank) sum += sample<float>(rank, i);
        float twice = sum;
        for (int rank = 1; rank < me.size(); ++rank) twice += sum;
        end.right = end.right && out[i] == twice && std::abs(doubled[i] - sum) <= 1e-5F * std::abs(sum);
      }
    }
    first.reset();
    if (all_say(me, good)) went(stage::binding, me.bind(what, fourth));
    went(stage::closing, me.group().close(soon(patience)));
    second.reset();
    third.reset();
    fourth.reset();
    me.leave();
  }
  return end;
}

struct outcome {
  std::vector<verdict> ranks;
  std::string failed_call;
  std::string words;  ///< that the report of the fault must contain
  bool failed = false;
  bool may_be_silent = false;
  bool leaked = false;
  bool freed_too_soon = false;  ///< while a stream used the memory or a peer had it open
};

outcome life_with_fault(int ranks, kind_of_ranks kind, int call, status code) {
  device_ranks all(ranks, kind);
  if (ranks == 3) all.without_batches();
  if (ranks == 3) all[0].driver().has_context(false);
  outcome result;
  result.ranks.resize(static_cast<std::size_t>(ranks));
  all[0].driver().inject(call, code);
  all.run([&](device_rank& me) { result.ranks[static_cast<std::size_t>(me.rank())] = life_of(me); });
  result.failed = all[0].driver().has_failed();
  result.failed_call = all[0].driver().failed_call();
  result.words = words_for_failed(all[0].driver(), code);
  result.may_be_silent = may_fail_silently(all[0].driver(), code, result.ranks[0].hit);
  all[0].driver().forget_faults();
  for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)].free_all();
  result.freed_too_soon = all.machine.freed_while_used != 0 || all.machine.freed_while_open != 0;
  result.leaked = all.machine.allocated() != 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& driver = all[static_cast<std::size_t>(rank)].driver();
    result.leaked = result.leaked || driver.opens != driver.closes || driver.streams() != 0 || driver.events() != 0 ||
                    driver.pinned() != 0;
  }
  return result;
}

/// Runs `count` lives at the same time, because each of them mostly waits.
template <class Live>
std::vector<outcome> lives(std::size_t count, Live live) {
  std::vector<std::future<outcome>> begun;
  for (std::size_t i = 0; i < count; ++i) begun.push_back(std::async(std::launch::async, live, i));
  std::vector<outcome> ended;
  for (auto& each : begun) ended.push_back(each.get());
  return ended;
}
constexpr std::size_t at_once = 8;

/// Checks what must hold after any failure on rank 0.
void check(const outcome& seen, status code) {
  const verdict& faulty = seen.ranks[0];
  INFO(seen.failed_call << " returns " << static_cast<int>(code) << " at stage " << static_cast<int>(faulty.hit));
  CHECK_FALSE(seen.freed_too_soon);
  CHECK((faulty.failure || seen.may_be_silent));
  if (faulty.failure) {
    CHECK(contains(faulty.failure.reason, seen.words));
    CHECK(faulty.at == faulty.hit);
  }
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    const verdict& each = seen.ranks[rank];
    INFO("rank " << rank << ": " << each.failure.message());
    CHECK((each.failure || each.right));
    if (!each.failure) continue;
    CHECK_FALSE(each.failure.reason.empty());
    CHECK(each.failure.code != errc::timeout);
    // Collective steps fail with the same error on all ranks; later failures are reported to the others.
    if (rank == 0 || each.at == stage::joining || each.at == stage::binding) continue;
    CHECK(each.failure.context.peer == 0);
    CHECK(each.failure.code == errc::aborted);
  }
  for (const verdict& each : seen.ranks) {
    if (faulty.at != stage::joining && faulty.at != stage::binding && faulty.at != stage::enqueueing) continue;
    CHECK(static_cast<bool>(each.failure));
    if (faulty.at == stage::joining || faulty.at == stage::binding) {
      CHECK(each.at == faulty.at);
      CHECK(each.failure.code == faulty.failure.code);
      CHECK(each.failure.reason == faulty.failure.reason);
    }
  }
}

}  // namespace

TEST_CASE("a run without faults gives right results and leaks nothing") {
  for (const kind_of_ranks kind : {kind_of_ranks::threads, kind_of_ranks::processes}) {
    const outcome seen = life_with_fault(3, kind, 1'000'000, status::unknown);
    CHECK_FALSE(seen.failed);
    CHECK_FALSE(seen.leaked);
    CHECK_FALSE(seen.freed_too_soon);
    for (const verdict& each : seen.ranks) {
      INFO(each.failure.message());
      CHECK(each.right);
      CHECK(each.at == stage::none);
    }
  }
}

TEST_CASE("the failure of each single driver call is reported, with two and with three ranks") {
  if (races_are_told) return;
  // Each time with other codes.
  const std::set<status> every = every_code();
  const std::vector<status> codes(every.begin(), every.end());
  int round = 0;
  for (const int ranks : {2, 3}) {
    for (const kind_of_ranks kind : {kind_of_ranks::processes, kind_of_ranks::threads}) {
      const auto code_of = [&](int call) {
        return codes[static_cast<std::size_t>(31 * round + 7 * call) % codes.size()];
      };
      int call = 0;
      int leaks = 0;
      std::set<stage> stages;
      for (bool failed = true; failed;) {
        const int first = call;
        const auto live = [&](std::size_t i) {
          const int failing = first + static_cast<int>(i);
          return life_with_fault(ranks, kind, failing, code_of(failing));
        };
        for (const outcome& seen : lives(at_once, live)) {
          failed = failed && seen.failed;
          if (!failed) break;
          check(seen, code_of(call++));
          leaks += seen.leaked ? 1 : 0;
          stages.insert(seen.ranks[0].at);
        }
      }
      CHECK(call > 60);
      CHECK(stages.size() == 6);  // each stage has failed
      CHECK(leaks == 0);
      ++round;
    }
  }
}

TEST_CASE("the failure of each driver function is reported, with every code and at each stage") {
  if (races_are_told) return;
  // The first call of each function with all codes, and its first call at each later stage with a few codes.
  std::vector<int> calls;
  std::set<int> later;
  int call_count = 0;
  {
    std::set<std::string> functions;
    std::set<std::pair<stage, std::string>> known;
    for (bool failed = true; failed;) {
      const int first = call_count;
      const auto live = [&](std::size_t i) {
        return life_with_fault(2, kind_of_ranks::processes, first + static_cast<int>(i), status::unknown);
      };
      for (const outcome& seen : lives(at_once, live)) {
        failed = failed && seen.failed;
        if (!failed) break;
        const bool is_new = functions.insert(seen.failed_call).second;
        if (known.insert({seen.ranks[0].hit, seen.failed_call}).second) calls.push_back(call_count);
        if (!is_new) later.insert(call_count);
        ++call_count;
      }
    }
    CHECK(functions.size() > 20);
    CHECK(known.size() > 40);
  }
  const std::vector<status> few{status::invalid_value,   status::out_of_memory, status::not_ready,
                                status::illegal_address, status::unknown,       status::peer_access_already_enabled};
  const std::set<status> every = every_code();
  std::vector<status> all(every.begin(), every.end());
#if defined(__SANITIZE_ADDRESS__)
  all = few;  // or it would take minutes
#endif
  for (const int call : calls) {
    const std::vector<status>& codes = later.count(call) != 0 ? few : all;
    for (std::size_t first = 0; first < codes.size(); first += at_once) {
      const auto live = [&](std::size_t i) {
        return life_with_fault(2, kind_of_ranks::processes, call, codes[first + i]);
      };
      const std::vector<outcome> seen = lives(std::min(at_once, codes.size() - first), live);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].failed) check(seen[i], codes[first + i]);
      }
    }
  }
}

TEST_CASE("a rank whose driver fails from some call on joins no group, and frees nothing that the other uses") {
  if (races_are_told) return;
  for (int call = 0;; ++call) {
    device_ranks all(2);
    std::vector<hocket::failure> heard(2);
    all[0].driver().break_at(call, status::illegal_address);
    all.run([&](device_rank& me) {
      hocket::failure& mine = heard[static_cast<std::size_t>(me.rank())];
      mine = me.join();
      if (mine) return;
      me.driver().forget_faults();
      static_cast<void>(me.group().close(soon()));
      me.leave();
    });
    INFO("call " << call << ", " << all[0].driver().failed_call() << ": " << heard[0].message());
    CHECK(all.machine.freed_while_open == 0);
    CHECK(all.machine.freed_while_used == 0);
    if (!heard[0] && !heard[1]) {
      CHECK(call > 60);
      break;
    }
    CHECK(contains(heard[0].reason, "error 700"));
    CHECK(heard[1].reason == heard[0].reason);
  }
}

TEST_CASE("failures to load or to launch a kernel are reported like failures of driver calls") {
  if (races_are_told) return;
  static constexpr auto refused = [] { return hocket::make_failure(errc::system, "no such kernel"); };
  struct {
    stage at;
    bool fused;
    plan::any_algorithm plan;
    hocket::kernel::stream_kernel element_kernel = loaded_kernel;
  } cases[] = {{stage::binding, false, plan::two_shot{}},
               {stage::binding, true, plan::two_shot{}},
               {stage::binding, false, plan::ring_all_reduce{}},
               {stage::enqueueing, false, plan::two_shot{}},
               {stage::enqueueing, true, plan::two_shot{}}};
  cases[0].element_kernel.load = cases[1].element_kernel.load = [](std::size_t) { return refused(); };
  cases[2].element_kernel.load = [](std::size_t sources) { return sources == 2 ? refused() : hocket::failure(); };
  cases[3].element_kernel.combine_many = [](void*, const void*, void*, const void* const*, std::size_t, std::size_t) {
    return refused();
  };
  cases[4].element_kernel.to_all = [](void*, const void*, void* const*, const void* const*, std::size_t, std::size_t) {
    return refused();
  };
  for (const auto& each : cases) {
    device_ranks all(3);
    std::vector<verdict> ends(3);
    all.run([&](device_rank& me) {
      verdict& end = ends[static_cast<std::size_t>(me.rank())];
      const auto went = [&](stage at, hocket::failure found) {
        if (found && !end.failure) end = {.at = at, .failure = std::move(found)};
        return !end.failure;
      };
      const std::plus<> op;
      if (!went(stage::joining, me.join())) return;
      const auto at = reinterpret_cast<ipc::address>(me.upload(samples<float>(me.rank(), size)));
      std::unique_ptr<device_operation> work;
      const bool good =
          went(stage::binding, me.bind({.plan = each.plan,
                                        .block_elements = size,
                                        .element_kernel = me.rank() == 0 ? &each.element_kernel : &loaded_kernel,
                                        .operation = &op,
                                        .in = at,
                                        .out = at,
                                        .fused = each.fused},
                                       work));
      if (good && went(stage::enqueueing, work->enqueue(me.stream()))) went(stage::finishing, work->finish(soon()));
      static_cast<void>(me.group().close(soon()));
      work.reset();
      me.leave();
      me.free_all();
    });
    for (const verdict& end : ends) {
      INFO(end.failure.message());
      const bool first = &end == &ends[0];
      CHECK(end.at == (first || each.at == stage::binding ? each.at : stage::finishing));
      if (first || each.at == stage::binding) CHECK(contains(end.failure.reason, "no such kernel"));
      if (!first && each.at != stage::binding) CHECK(end.failure.code == errc::aborted);
    }
    check_clean(all.machine, all.drivers());
  }
}

TEST_CASE("a rank that does not enqueue an operation in time is named at the deadline") {
  if (races_are_told) return;
  device_ranks all(3);
  std::vector<verdict> ends(3);
  all.run([&](device_rank& me) {
    const bool stays_away = me.rank() == 1;
    verdict& end = ends[static_cast<std::size_t>(me.rank())];
    end = life_of(me, std::chrono::milliseconds(300), [&] {
      if (stays_away) std::this_thread::sleep_for(std::chrono::milliseconds(800));
    });
  });
  for (const std::size_t rank : {0U, 2U}) {
    INFO(ends[rank].failure.message());
    const bool named = ends[rank].failure.code == errc::timeout && ends[rank].failure.context.peer == 1;
    const bool heard = ends[rank].failure.code == errc::aborted;  // because of the other rank's timeout
    CHECK((named || heard));
    CHECK(ends[rank].at == stage::finishing);
  }
  CHECK((ends[0].failure.code == errc::timeout || ends[2].failure.code == errc::timeout));
  CHECK(ends[1].failure.code == errc::aborted);
  for (int rank = 0; rank < 3; ++rank) all[static_cast<std::size_t>(rank)].free_all();
  CHECK(all.machine.freed_while_used == 0);
  CHECK(all.machine.freed_while_open == 0);
}

TEST_CASE("a rank whose process has ended is named, and the others free their memory") {
  if (races_are_told) return;
  device_ranks all(3);
  std::atomic<bool> dead{false};
  std::vector<hocket::failure> before(3), waits(3), ends(3);
  std::vector<std::unique_ptr<device_operation>> work(3);
  all.run([&](device_rank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    const std::plus<> op;
    before[rank] = me.join(std::chrono::seconds(2), [&](int peer) { return peer == 2 && dead.load(); });
    if (before[rank]) return;
    const auto at = reinterpret_cast<ipc::address>(me.upload(samples<float>(me.rank(), size)));
    before[rank] = me.bind({.plan = plan::one_shot{},
                            .block_elements = size,
                            .element_kernel = &queue_kernel_of<std::plus<>, float>,
                            .operation = &op,
                            .in = at,
                            .out = at},
                           work[rank]);
    if (before[rank]) return;
    if (me.rank() == 2) {
      dead = true;
      return;
    }
    before[rank] = work[rank]->enqueue(me.stream());
    waits[rank] = work[rank]->finish(soon());
    ends[rank] = me.group().close(soon());
    work[rank].reset();
    me.leave();
    me.free_all();
  });
  for (const hocket::failure& each : before) CHECK_FALSE(static_cast<bool>(each));
  for (const std::size_t rank : {0U, 1U}) {
    INFO(waits[rank].message() << "; " << ends[rank].message());
    const bool lost = waits[rank].code == errc::peer_lost && waits[rank].context.peer == 2;
    CHECK((lost || (waits[rank].code == errc::aborted && waits[rank].context.peer == 2)));
    CHECK(ends[rank].code == errc::peer_lost);
    CHECK(ends[rank].context.peer == 2);
  }
  CHECK((waits[0].code == errc::peer_lost || waits[1].code == errc::peer_lost));
  // The memory of rank 2 is freed with its process.
  CHECK(all.machine.freed_while_used == 0);
  all[2].free_all();
  work[2].reset();
  all[2].leave();
}

TEST_CASE("a rank whose driver fails from some call on leaves its memory allocated, and the other learns of it") {
  if (races_are_told) return;
  for (const int later : {0, 7}) {
    device_ranks all(2);
    std::vector<verdict> ends(2);
    all.run([&](device_rank& me) {
      ends[static_cast<std::size_t>(me.rank())] = life_of(me, std::chrono::milliseconds(1000), [&] {
        if (me.rank() == 0) me.driver().break_at(later, status::illegal_address);
      });
    });
    INFO(later << ": " << ends[0].failure.message() << "; " << ends[1].failure.message());
    CHECK(static_cast<bool>(ends[0].failure));
    CHECK(ends[0].failure.code == errc::system);
    CHECK(ends[1].failure.code == errc::aborted);
    CHECK(ends[1].failure.context.peer == 0);
    CHECK(all.machine.freed_while_used == 0);
    CHECK(all.machine.freed_while_open == 0);
    all[0].driver().forget_faults();
  }
}
