// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The measurement of one rank, from the first line to the last.
#pragma once

#include "settings.hpp"
#include "trial.hpp"

#include <stdexcept>

namespace perf {

/// What was asked for does not exist; found out by all ranks alike.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Measures what `wanted` says on all ranks of `comm`; rank 0 prints. True if all results were right.
bool measure(any_communicator comm, const settings& wanted);

}  // namespace perf
