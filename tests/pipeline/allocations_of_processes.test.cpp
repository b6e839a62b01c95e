// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// A step allocates no memory, independent of the size of its messages.
#include "pipeline/waiting_stage.hpp"
#include "schedule/schedules.hpp"
#include "support/catch.hpp"
#include "support/counted_allocations.hpp"
#include "ucx/ranks.hpp"

#include <hocket/pipeline/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

using namespace ucx_test;
using namespace pipeline_test;
namespace pipeline = hocket::pipeline;

TEST_CASE("a step between processes allocates no memory") {
  constexpr std::size_t bytes_of_messages[] = {64, 4096, 30'000, 700'000};  // UCX uses different protocols for them
  for (const route& way : {shared_memory, network}) {
    for (const schedule& plan : {schedules::one_forward_one_backward(2, 8), schedules::gpipe(2, 4),
                                 schedules::interleaved(2, 4, 2), schedules::zero_bubble(2, 8)}) {
      INFO(plan.name() << " over " << way.name);
      CHECK(run_ranks(2, way, [&](communicator& comm, findings& found) {
              for (const std::size_t bytes : bytes_of_messages) {
                std::deque<waiting_stage> stages;
                std::vector<pipeline::any_stage> own;
                for (int stage = 0; stage < plan.stages(); ++stage) {
                  if (!plan.placement.holds(comm.rank(), stage)) continue;
                  stages.emplace_back(
                      stage, plan.stages(), schedules::stage_cost{}, [](double) {}, bytes);
                  own.emplace_back(stages.back());
                }
                pipeline::executor run(comm, plan, own);
                for (int step = 0; step < 5; ++step) run.run();
                // A peer that has waited long sends an inquiry; reading this control message allocates.
                std::vector<std::size_t> made;
                for (int batch = 0; batch < 9; ++batch) {
                  const std::size_t before = allocations;
                  for (int step = 0; step < 2; ++step) run.run();
                  made.push_back(allocations - before);
                }
                std::sort(made.begin(), made.end());
                found.expect(made[4] == 0,
                             std::to_string(bytes) + " bytes: " + std::to_string(made[4]) + " allocations in 2 steps");
              }
            }) == "");
    }
  }
}
