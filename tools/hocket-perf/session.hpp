// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The measurement of one rank, from the first line to the last.
#pragma once

#include "settings.hpp"
#include "trial.hpp"
#include "usage_error.hpp"

namespace perf {

/// Throws `usage_error` if so many ranks can't do what `wanted` says. To be asked before they meet: a rank that leaves for that
/// would be missed by others.
void check(const settings& wanted, int ranks);

/// Measures what `wanted` says on all ranks of `comm`; rank 0 prints. True if all results were right.
bool measure(any_communicator comm, const settings& wanted);

}  // namespace perf
