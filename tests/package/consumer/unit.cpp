// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "unit.hpp"

#include <hocket/hocket.hpp>

#include <atomic>
#include <functional>
#include <vector>

int sum_of_ranks(int ranks) {
  std::atomic<int> result = 0;
  hocket::local::run(ranks, [&](auto comm) {
    const std::vector<int> in{comm.rank() + 1};
    std::vector<int> out(1);
    hocket::all_reduce(comm, in, out, std::plus<>{});
    if (comm.rank() == 0) result = out.front();
  });
  return result;
}
