// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The timeline of a step on all ranks, for drawing and for costs. Each rank has measured its own row.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/pipeline/executor.hpp>
#include <hocket/schedule/schedule_action.hpp>
#include <hocket/schedule/timeline.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

/// Returns `measured()` of the executors of all ranks, in seconds; equal on all ranks. Times of a rank count from the
/// start of its own `run`, so call `barrier` before the step to be measured. Collective, between steps. Simulated
/// ranks, which must not wait, concatenate `measured()` of all ranks instead. Raises `invalid_argument` on all ranks if
/// a rank has not run a whole step yet: its times would be 0. Cost: one all_reduce of two numbers per action.
template <class Domain>
timeline gather_measured(const communicator<Domain>& comm, const executor<Domain>& run,
                         const std::source_location& site = std::source_location::current()) {
  const schedule& plan = run.plan();
  // The entries of other ranks are 0, so the sum has all times. The last entry counts ranks without a whole step.
  std::vector<std::uint64_t> times(2 * plan.length() + 1, 0);
  const auto& own = plan.of(comm.rank());
  const auto computes = [](const auto& each) { return plan::pipeline::is_computation(each.first.kind); };
  times.back() = static_cast<std::size_t>(std::count_if(own.begin(), own.end(), computes)) != run.measured().size();
  const auto place = [&](int rank, std::size_t index) {
    for (int before = 0; before < rank; ++before) index += plan.of(before).size();
    return 2 * index;
  };
  for (const auto& each : run.measured()) {
    const std::size_t at = place(comm.rank(), each.index);
    times[at] = std::bit_cast<std::uint64_t>(each.begin);
    times[at + 1] = std::bit_cast<std::uint64_t>(each.end);
  }
  all_reduce(comm, in_place(times), std::plus<>{}, options<>{}, site);
  if (times.back() != 0) {
    raise(errc::invalid_argument,
          hocket::detail::concat({times.back(), " of ", comm.size(),
                                  " ranks have not run a whole step yet: call gather_measured after one"}),
          {.operation = "gather_measured", .rank = comm.rank(), .ranks = comm.size(), .site = site});
  }
  timeline all;
  for (int rank = 0; rank < plan.ranks(); ++rank) {
    for (std::size_t i = 0; i < plan.of(rank).size(); ++i) {
      if (!computes(plan.of(rank)[i])) continue;
      const std::size_t at = place(rank, i);
      all.push_back(
          {rank, i, plan.of(rank)[i], std::bit_cast<double>(times[at]), std::bit_cast<double>(times[at + 1])});
    }
  }
  return all;
}

}  // namespace pipeline
HOCKET_END_NAMESPACE
