// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A step allocates no memory.
#include "pipeline/waiting_stage.hpp"
#include "schedule/schedules.hpp"
#include "support/counted_allocations.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/pipeline/executor.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <vector>

using namespace pipeline_test;
namespace pipeline = hocket::pipeline;

TEST_CASE("a step allocates no memory") {
  constexpr std::size_t sizes[] = {64, 4096};  // a transport may treat small messages differently
  for (const int ranks : {2, 3}) {
    hocket_test::on_ranks(ranks, [&](hocket_test::thread_rank& me) {
      for_every_schedule(
          [&](const schedule& plan, const pipeline_test::sizes& s) {
            if (s.ranks != ranks || s.microbatches != 8 || s.stages_per_rank > 2) return;
            for (const std::size_t bytes : sizes) {
              std::deque<waiting_stage> stages;
              std::vector<pipeline::any_stage> own;
              for (int stage = 0; stage < plan.stages(); ++stage) {
                if (!plan.placement.holds(me.rank(), stage)) continue;
                stages.emplace_back(
                    stage, plan.stages(), schedules::stage_cost{}, [](double) {}, bytes);
                own.emplace_back(stages.back());
              }
              pipeline::executor run(me.comm(), plan, own);
              run.run();
              // On a busy machine, a peer that waited long for this rank's set-up may have sent an inquiry. The next
              // step reads this control message, with allocations.
              std::vector<std::size_t> made;
              for (int batch = 0; batch < 5; ++batch) {
                const std::size_t before = allocations;
                for (int step = 0; step < 4; ++step) run.run();
                made.push_back(allocations - before);
              }
              std::sort(made.begin(), made.end());
              me.check(made[2] == 0, [&] {
                return std::string(plan.name()) + ", " + std::to_string(bytes) + " bytes: " + std::to_string(made[2]) +
                       " allocations in 4 steps";
              });
            }
          },
          ranks, 8);
    });
  }
}
