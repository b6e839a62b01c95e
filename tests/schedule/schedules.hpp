// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls every generator with all sizes that it allows, for tests of properties of all schedules.
#pragma once

#include <hocket/schedule/dual_pipe.hpp>
#include <hocket/schedule/gpipe.hpp>
#include <hocket/schedule/interleaved.hpp>
#include <hocket/schedule/one_forward_one_backward.hpp>
#include <hocket/schedule/v_half.hpp>
#include <hocket/schedule/zero_bubble_v.hpp>

#include <algorithm>

namespace pipeline_test {

namespace schedules = hocket::plan::pipeline;
using hocket::plan::pipeline::schedule;

/// Sizes that a schedule was made for.
struct sizes {
  int ranks;
  int microbatches;
  int stages_per_rank;  ///< number of chunks of a rank's part of the model
  int group;            ///< of interleaved schedules

  int P() const { return ranks; }
  int M() const { return microbatches; }
};

inline int default_group(int ranks, int microbatches) { return microbatches / std::max(1, microbatches / ranks); }

/// Calls `visit(schedule, sizes)` for every schedule of up to 8 ranks, 32 microbatches and 4 stages per rank.
template <class Visit>
void for_every_schedule(Visit visit, int most_ranks = 8, int most_microbatches = 32) {
  for (int p = 1; p <= most_ranks; ++p) {
    for (int m = 1; m <= most_microbatches; ++m) {
      const auto plain = [&](const schedule& plan, int v) { visit(plan, sizes{p, m, v, 0}); };
      plain(schedules::gpipe(p, m), 1);
      plain(schedules::one_forward_one_backward(p, m), 1);
      plain(schedules::zero_bubble_v(p, m), 2);
      plain(schedules::v_half(p, m), 2);
      plain(schedules::v_min(p, m), 2);
      if (m >= 2 * p) plain(schedules::dual_pipe_v(p, m), 2);
      if (p % 2 == 0 && m % 2 == 0 && m >= 2 * p) plain(schedules::dual_pipe(p, m), 1);
      const int group = default_group(p, m);
      for (int v = 1; v <= 4; ++v) {
        visit(schedules::breadth_first(p, m, v), sizes{p, m, v, 0});
        if (v > 1 && m % std::max(1, m / p) != 0) continue;
        visit(schedules::interleaved(p, m, v), sizes{p, m, v, group});
        visit(schedules::interleaved_zero_bubble(p, m, v), sizes{p, m, v, group});
      }
      plain(schedules::zero_bubble(p, m), 1);
    }
  }
}

}  // namespace pipeline_test
