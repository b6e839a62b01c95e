// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/hocket.hpp>

#include <functional>
#include <vector>

#include "unit.hpp"

int main() {
  bool right = sum_of_ranks(3) == 6;
  hocket::local::run(1, [&](auto comm) {
    std::vector<int> values{7};
    hocket::all_reduce(comm, hocket::in_place(values), std::plus<>{});
    right = right && values.front() == 7;
  });
  return right ? 0 : 1;
}
