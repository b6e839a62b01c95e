// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this collective has no root
//
// The choice of all_reduce depends on no rank.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) {
  hocket::explain<float>(comm, hocket::all_reduce, 100, std::plus<>{}, hocket::root{1});
}
