// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Pipelines between processes, over shared memory and over TCP: every schedule gives the gradients of the whole model; a
// stage that throws, a rank that is killed and a stage that never returns end all ranks with the right error.
#include "pipeline/model.hpp"
#include "plan/pipeline/schedules.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/pipeline/executor.hpp>

#include <chrono>
#include <csignal>
#include <cstddef>
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
        if (s.ranks == ranks && s.microbatches == 8 && s.stages_per_rank <= 2) all.push_back(plan);
      },
      ranks, 8);
  return all;
}

void compare(communicator& comm, findings& found, const schedule& plan) {
  std::vector<layer> own = layers_of(plan, comm.rank());
  const std::vector<layer> expected = sequential(plan.stages(), plan.microbatches);
  pipeline::executor run(comm, plan, std::vector<pipeline::any_stage>(own.begin(), own.end()));
  run.run();
  if (plan.placement.has_two_directions()) return;  // gradients of two copies: threads as ranks add them up
  std::size_t next = 0;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (!plan.placement.holds(comm.rank(), stage)) continue;
    const layer& mine = own[next++];
    const std::string wrong = difference(mine.gradient(), mine.exact(), expected[static_cast<std::size_t>(stage)]);
    found.expect(wrong.empty(), std::string(plan.name()) + ", stage " + std::to_string(stage) + ": " + wrong);
  }
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

TEST_CASE("every schedule gives the gradients of the whole model, between processes") {
  for (const route& way : routes) {
    for (const int ranks : {2, 3, 4}) {
      CHECK(run_ranks(ranks, way, [&](communicator& comm, findings& found) {
              for (const schedule& plan : schedules_of(ranks)) compare(comm, found, plan);
            }) == "");
    }
  }
}

TEST_CASE("what a stage throws reaches every process") {
  for (const route& way : routes) {
    CHECK(run_ranks(3, way, [&](communicator& comm, findings& found) {
            difficult_stage own{comm.rank(), 3, [] { throw std::out_of_range("no such token"); }};
            const auto train = [&] {  // others may hear of the failure while they still set up theirs
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
              found.expect(thrown, "the exception itself comes out where it was thrown");
              return;
            }
            try {
              train();
              found.expect(false, "the step did not fail");
            } catch (const hocket::error& cause) {
              const std::string says = cause.what();
              found.expect(says.find("stage 1 failed in 1F2, microbatch 2: no such token") != std::string::npos,
                           "the message says: " + says);
            }
          }) == "");
  }
}

TEST_CASE("what a stage throws reaches every process, also if its own ends at once") {
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
                     "the message says: " + says);
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

TEST_CASE("a stage that never returns is a timeout that names its rank") {
  for (const route& way : routes) {
    CHECK(run_ranks(2, way, [&](communicator& comm, findings& found) {
            comm.set_timeout(500ms);
            difficult_stage own{comm.rank(), 2, [] { std::this_thread::sleep_for(2s); }};
            try {
              pipeline::executor run(comm, schedules::one_forward_one_backward(2, 8), {own});
              run.run();
              found.expect(comm.rank() == 1, "the step did not fail");
            } catch (const hocket::error& cause) {
              if (comm.rank() != 0) return;  // the late rank learns that it was given up
              found.expect(cause.code() == hocket::errc::timeout, std::string("not a timeout: ") + cause.what());
              found.expect(cause.context().peer == 1, std::string("not rank 1: ") + cause.what());
            }
          }) == "");
  }
}

TEST_CASE("a rank that is killed is named on every other rank") {
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
