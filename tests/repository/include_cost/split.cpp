// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// For include_cost: the parts of the library below meshes and tensors that every_layer.cpp uses.
#include <hocket/group/split.hpp>
#include <hocket/hocket.hpp>

#include <span>

int main() {
  int sizes = 0;
  hocket::local::run(4, [&](auto comm) {
    const auto part = hocket::split(comm, hocket::color{comm.rank() % 2});
    double one = 1;
    hocket::all_reduce(part, hocket::in_place(std::span(&one, 1)));
    if (comm.rank() == 0) sizes = static_cast<int>(one);
  });
  return sizes == 2 ? 0 : 1;
}
