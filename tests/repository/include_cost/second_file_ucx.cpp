// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A second file of a program, with one more call: include_cost measures its compile time.
#include <hocket/ucx.hpp>

#include <span>

void gather(const hocket::ucx::communicator& comm, std::span<const float> in, std::span<float> out) {
  hocket::all_gather(comm, in, out);
}
