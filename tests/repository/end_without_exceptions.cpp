// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A mistake in a program without exceptions, which nobody can catch: it ends the program, in words.
#include <hocket/hocket.hpp>

#include <vector>

int main() {
  hocket::local::run(1, [](const auto& comm) {
    const std::vector<int> three(3);
    std::vector<int> two(2);
    hocket::all_reduce(comm, three, two);
  });
}
