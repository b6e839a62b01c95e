// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the root as hocket::root
//
// A number could be a number of elements, too.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) {
  hocket::explain<float>(comm, hocket::reduce, 100, std::plus<>{}, 1);
}
