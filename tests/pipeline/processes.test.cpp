// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Pipelines between processes, over shared memory and over TCP: every schedule gives the gradients of the whole model; a
// stage that throws, a rank that is killed and a stage that never returns make all ranks fail with the right error.
#include "pipeline/against_model.hpp"
#include "pipeline/model.hpp"
#include "pipeline/pattern_stage.hpp"
#include "schedule/schedules.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/collective/send_recv.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/greedy.hpp>
#include <hocket/schedule/lower/lower.hpp>
#include <hocket/schedule/text.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <deque>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace ucx_test;
using namespace pipeline_test;
namespace pipeline = hocket::pipeline;

constexpr route routes[] = {shared_memory, network};

std::vector<schedule> schedules_of(int ranks) {
  std::vector<schedule> all;
  for_every_schedule(
      [&](const schedule& plan, const sizes& s) {
        if (s.ranks != ranks || s.stages_per_rank > 3) return;
        const bool few = s.microbatches <= 5 && s.stages_per_rank == 1;
        if (s.microbatches == 8 || few || (s.microbatches == 13 && s.stages_per_rank <= 2)) all.push_back(plan);
        if (s.microbatches == 8) all.push_back(schedules::recompute_activations(plan));
      },
      ranks, 13);
  std::vector<schedules::stage_cost> each;  // greedy makes a new schedule for these costs
  for (int stage = 0; stage < 2 * ranks; ++stage) each.push_back({1. + stage % 3, 2. - stage % 2, 0.5});
  all.push_back(schedules::greedy(schedules::placement::v_shape(ranks), 6, schedules::costs(each, 0.2)).plan);
  return all;
}

void compare(communicator& comm, findings& found, const schedule& plan) {
  const std::string wrong = differs_from_model(comm, plan, sequential(plan.stages(), plan.microbatches));
  found.expect(wrong.empty(), std::string(plan.name()) + ", " + std::to_string(plan.microbatches) + " microbatches, " +
                                  std::to_string(plan.stages()) + " stages: " + wrong);
}

/// Misbehaves at microbatch 2 of stage 1.
struct difficult_stage {
  using input_type = double;
  using output_type = double;
  int index = 0;
  int stages = 1;
  void (*misbehave)() = nullptr;
  std::chrono::milliseconds pause{0};  // of every forward pass
  std::size_t input_size() const { return index == 0 ? 0 : 2; }
  std::size_t output_size() const { return index + 1 == stages ? 0 : 2; }
  void forward(int microbatch, std::span<const double>, std::span<double>) {
    if (index != 1) std::this_thread::sleep_for(pause);
    if (microbatch == 2 && index == 1 && misbehave != nullptr) misbehave();
  }
  void backward(int, std::span<const double>, std::span<const double>, std::span<double>) {}
};

}  // namespace

TEST_CASE("between processes, every schedule gives the gradients of the whole model, in the order that it lists") {
  for (const route& way : routes) {
    for (const int ranks : {2, 3, 4}) {
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              for (const schedule& plan : schedules_of(ranks)) compare(comm, found, plan);
            }) == "");
    }
  }
}

TEST_CASE("between processes, no buffer is reused before its message was read") {
  for (const route& way : routes) {
    CHECK(run_ranks(3, way, [&](communicator& comm, findings& found) {
            for (const schedule& plan : {schedules::one_forward_one_backward(3, 8), schedules::zero_bubble_v(3, 6),
                                         schedules::gpipe(3, 5), schedules::interleaved(3, 6, 2)}) {
              for (const std::size_t size : {std::size_t{7}, std::size_t{5000}, std::size_t{300000}}) {
                std::deque<pattern_stage> own;
                for (int stage = 0; stage < plan.stages(); ++stage) {
                  if (plan.placement.holds(comm.rank(), stage)) own.emplace_back(stage, plan.stages(), size, 2000);
                }
                pipeline::executor run(comm, plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
                for (int step = 0; step < 2; ++step) run.run();
                for (const pattern_stage& each : own) {
                  found.expect(each.wrong() == 0, std::string(plan.name()) + ": received data differ from sent");
                }
              }
            }
          }) == "");
  }
}

TEST_CASE("between processes, messages of the user and a second pipeline may be in flight during a step") {
  // The first schedule receives messages in another order than they are sent.
  const schedule first = schedules::parse(
      "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B1,0RECV_B0,0B0,0B1,0WAIT_SEND_F0,0WAIT_SEND_F1\n"
      "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\n");
  const schedule second = schedules::zero_bubble(2, 4);
  const auto differences = [](const schedule& plan, const std::vector<layer>& own, int rank) {
    const std::vector<layer> expected = sequential(plan.stages(), plan.microbatches);
    return difference(own[0].gradient(), own[0].exact(), expected[static_cast<std::size_t>(rank)]);
  };
  for (const route& way : routes) {
    CHECK(run_ranks(2, way, [&](communicator& comm, findings& found) {
            const hocket::peer other{1 - comm.rank()};
            std::vector<layer> one = layers_of(first, comm.rank());
            std::vector<layer> two = layers_of(second, comm.rank());
            pipeline::executor here(comm, first, {one[0]});
            pipeline::executor there(comm, second, {two[0]});
            const std::vector<double> sent(width(1), 100 + comm.rank());
            std::vector<double> received(width(1));
            auto asked = hocket::recv_async(comm, received, other);
            auto given = hocket::send_async(comm, sent, other);
            here.start();
            there.start();
            bool here_is_over = false;
            bool there_is_over = false;
            while (!here_is_over || !there_is_over) {  // in a different order on each rank
              if (comm.rank() == 0) here_is_over = here_is_over || here.advance();
              there_is_over = there_is_over || there.advance();
              if (comm.rank() == 1) here_is_over = here_is_over || here.advance();
            }
            asked.wait();
            given.wait();
            found.expect(received == std::vector<double>(width(1), 101 - comm.rank()), "the user's message is wrong");
            found.expect(differences(first, one, comm.rank()).empty(), "the gradients of the first pipeline differ");
            found.expect(differences(second, two, comm.rank()).empty(), "the gradients of the second pipeline differ");
          }) == "");
  }
}

TEST_CASE("a schedule that differs on one process is rejected on all processes") {
  CHECK(run_ranks(3, shared_memory, [&](communicator& comm, findings& found) {
          const schedule plan = comm.rank() == 1 ? schedules::gpipe(3, 4) : schedules::one_forward_one_backward(3, 4);
          difficult_stage own{comm.rank(), 3};
          try {
            pipeline::executor run(comm, plan, {own});
            found.expect(false, "no error was raised");
          } catch (const hocket::error& cause) {
            const std::string says = cause.what();
            found.expect(says.find("different schedules") != std::string::npos, says);
            found.expect(says.find("rank 1 has gpipe of 4 microbatches and 3 stages") != std::string::npos, says);
          }
        }) == "");
}

TEST_CASE("an exception of a stage reaches every process") {
  for (const route& way : routes) {
    CHECK(run_ranks(3, way, [&](communicator& comm, findings& found) {
            difficult_stage own{comm.rank(), 3, [] { throw std::out_of_range("no such token"); }};
            const auto train = [&] {  // others may learn of the failure during their set-up
              pipeline::executor run(comm, schedules::one_forward_one_backward(3, 8), {own});
              run.run();
            };
            if (comm.rank() == 1) {
              bool thrown = false;
              try {
                train();
              } catch (const std::out_of_range&) {
                thrown = true;
              }
              found.expect(thrown, "the exception did not reach the caller on its rank");
              return;
            }
            try {
              train();
              found.expect(false, "the step did not fail");
            } catch (const hocket::error& cause) {
              const std::string says = cause.what();
              found.expect(says.find("stage 1 failed in 1F2, microbatch 2: no such token") != std::string::npos,
                           "the message is: " + says);
            }
          }) == "");
  }
}

TEST_CASE("an exception from a stage's sizes reaches every process") {
  struct unready_stage : difficult_stage {
    std::size_t input_size() const {
      if (index == 1) throw std::length_error("the model was not read");
      return difficult_stage::input_size();
    }
  };
  for (const route& way : routes) {
    CHECK(run_ranks(3, way, [&](communicator& comm, findings& found) {
            unready_stage own{{comm.rank(), 3}};
            const auto make = [&] { pipeline::executor run(comm, schedules::one_forward_one_backward(3, 8), {own}); };
            if (comm.rank() != 1) {
              const auto cause = found.fails(hocket::errc::aborted, "the executor", make);
              found.expect(
                  cause.reason.find("stage 1 failed when it was asked for its sizes: the model was not read") !=
                      std::string::npos,
                  "the message is: " + cause.message());
              return;
            }
            bool thrown = false;
            try {
              make();
            } catch (const std::length_error&) {
              thrown = true;
            }
            found.expect(thrown, "the exception did not reach the caller on its rank");
          }) == "");
  }
}

TEST_CASE("an exception of a stage reaches every process, even if its own process ends immediately") {
  for (const route& way : routes) {
    auto results = results_of(3, way, [](const world& where, findings& found) {
      auto comm = hocket::ucx::connect(where);
      meet_all(comm);
      difficult_stage own{comm.rank(), 3, [] { throw std::out_of_range("no such token"); }, 30ms};
      try {
        pipeline::executor run(comm, schedules::one_forward_one_backward(3, 8), {own});
        run.run();
        found.expect(false, "the step did not fail");
      } catch (const hocket::error& cause) {
        const std::string says = cause.what();
        found.expect(says.find("stage 1 failed in 1F2, microbatch 2: no such token") != std::string::npos,
                     "the message is: " + says);
      } catch (const std::out_of_range&) {
        ::raise(SIGKILL);
      }
    });
    CHECK(results[1].signal == SIGKILL);
    results[1] = {};
    results[1].exit_code = 0;
    CHECK(hocket::launch::describe_failures(results) == "");
  }
}

TEST_CASE("a stage that never returns causes a timeout on every other process, which names its rank") {
  for (const route& way : routes) {
    for (const int ranks : {2, 4}) {
      auto results = results_of(ranks, way, [&](const world& where, findings& found) {
        auto comm = hocket::ucx::connect(where);
        meet_all(comm);
        comm.set_timeout(500ms);
        // The process ends by a signal after all others have failed.
        difficult_stage own{comm.rank(), ranks, [] {
                              std::this_thread::sleep_for(2500ms);
                              ::raise(SIGKILL);
                            }};
        const auto begin = std::chrono::steady_clock::now();
        const auto cause = found.fails(hocket::errc::timeout, "the step", [&] {
          pipeline::executor run(comm, schedules::one_forward_one_backward(ranks, 8), {own});
          run.run();
        });
        found.expect(std::chrono::steady_clock::now() - begin < 2400ms, "the error came long after the deadline");
        found.expect(cause.context.peer == 1, "the peer is not rank 1: " + cause.message());
      });
      CHECK(results[1].signal == SIGKILL);
      results[1] = {};
      results[1].exit_code = 0;
      CHECK(hocket::launch::describe_failures(results) == "");
    }
  }
}

TEST_CASE("a rank that is killed is named in the error of every other rank") {
  for (const route& way : routes) {
    auto results = results_of(3, way, [](const world& where, findings& found) {
      auto comm = hocket::ucx::connect(where);
      meet_all(comm);
      difficult_stage own{comm.rank(), 3, [] { ::raise(SIGKILL); }};
      try {
        pipeline::executor run(comm, schedules::one_forward_one_backward(3, 8), {own});
        run.run();
        found.expect(false, "the step did not fail");
      } catch (const hocket::error& cause) {
        found.expect(cause.code() == hocket::errc::peer_lost, std::string("not peer_lost: ") + cause.what());
        found.expect(cause.context().peer == 1, std::string("not rank 1: ") + cause.what());
      }
    });
    CHECK(results[1].signal == SIGKILL);
    results[1] = {};
    results[1].exit_code = 0;
    CHECK(hocket::launch::describe_failures(results) == "");
  }
}
