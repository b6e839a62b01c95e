// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only all_reduce and reduce take in_place\(buffer\)
//
// One buffer would have to be a block on some ranks, and the whole vector on the root.
#include <hocket/hocket.hpp>

#include <vector>

void misuse(const hocket::local::communicator& comm, std::vector<float>& all) {
  hocket::gather(comm, hocket::in_place(all), hocket::root{0});
}
