// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The smallest program with a collective between processes: include_cost measures its compile time.
#include <hocket/ucx.hpp>

#include <functional>
#include <vector>

int main() {
  auto comm = hocket::ucx::connect();
  const std::vector<float> in(1024, 1.0F);
  std::vector<float> out(in.size());
  hocket::all_reduce(comm, in, out, std::plus<>{});
  return out.front() == static_cast<float>(comm.size()) ? 0 : 1;
}
