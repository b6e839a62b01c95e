// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A misuse in a program without exceptions ends the program with an error text.
#include <hocket/hocket.hpp>

#include <vector>

int main() {
  hocket::local::run(1, [](const auto& comm) {
    const std::vector<int> three(3);
    std::vector<int> two(2);
    hocket::all_reduce(comm, three, two);
  });
}
