// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// hocket::ucx adds the headers and libraries of UCX to its users.
#include <hocket/hocket.hpp>
#include <hocket/ucx.hpp>

#include <span>

int main() {
  const auto comm = hocket::ucx::connect();  // a world of one rank, because no launcher has started others
  float sum = 1;
  hocket::all_reduce(comm, hocket::in_place(std::span(&sum, 1)));
  return comm.size() == 1 && sum == 1 ? 0 : 1;
}
