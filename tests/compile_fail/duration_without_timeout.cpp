// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass a duration as a timeout: with\(timeout\(5s\)\)
//
// A duration without a name could have any purpose.
#include <hocket/hocket.hpp>

#include <chrono>
#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& in, std::vector<float>& out) {
  hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(std::chrono::seconds(5)));
}
