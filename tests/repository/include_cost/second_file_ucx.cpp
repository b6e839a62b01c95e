// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Another file of a program that makes one call more, compiled by include_cost to see what that costs.
#include <hocket/ucx.hpp>

#include <span>

void gather(const hocket::ucx::communicator& comm, std::span<const float> in, std::span<float> out) {
  hocket::all_gather(comm, in, out);
}
