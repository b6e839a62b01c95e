// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The measurement, as one rank runs it.
#pragma once

#include "settings.hpp"
#include "trial.hpp"
#include "usage_error.hpp"

namespace perf {

/// Throws `usage_error` if `ranks` ranks can't run the measurement. Call it before the ranks connect: other ranks would
/// wait for a rank that exits afterwards.
void check(const settings& wanted, int ranks);

/// Runs the measurement on all ranks of `comm`; rank 0 prints. Returns true if all results were right.
bool measure(any_communicator comm, const settings& wanted);

}  // namespace perf
