// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Costs of links in a file, so that every start on this machine chooses the same algorithms.
#pragma once

#include <hocket/ucx.hpp>

#include <string>

namespace perf {

/// Makes this process measure the costs in `connect`. Call it before.
void measure_costs_at_start_up();

/// On rank 0, writes the costs that the ranks of `comm` measured at start-up to `file`, which `HOCKET_CONSTANTS` may
/// then name, and prints them. Throws `std::runtime_error`, and writes nothing, if they measured none.
void write_costs(const hocket::ucx::communicator& comm, const std::string& file);

}  // namespace perf
