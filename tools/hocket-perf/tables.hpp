// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Results as tables, in the layouts of nccl-tests and of OSU Micro-Benchmarks, which existing scripts read.
#pragma once

#include "figures.hpp"
#include "settings.hpp"

#include <string>

namespace perf {

/// The three lines above the rows of nccl-tests. Percentiles follow its columns, which so keep their places.
std::string nccl_header(const settings& wanted);
/// A row of nccl-tests. If a call has only one placement, both groups of columns show it, and the group that was not
/// measured has no number of wrong elements.
std::string nccl_row(const row& line, const settings& wanted);
/// Explains a row with the same figures in both groups; empty if the call has both placements.
std::string one_placement_text(collective what, const settings& wanted);

/// The lines above the rows of OSU Micro-Benchmarks.
std::string osu_header(const row& line, const settings& wanted);
/// A row of OSU Micro-Benchmarks: the mean over iterations and ranks, and the means of the fastest and the slowest
/// rank. Empty if no placement was measured.
std::string osu_row(const row& line, const settings& wanted);
/// Returns the size as OSU Micro-Benchmarks count it: one block for all_gather and all_to_all.
std::size_t osu_size(const row& line);

}  // namespace perf
