// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this operation combines nothing
//
// Nothing is combined in an all_gather.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) {
  hocket::explain<float>(comm, hocket::all_gather, 100, hocket::with(hocket::wire<hocket::bfloat16>));
}
