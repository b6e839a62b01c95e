// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four threads, each a rank, add up their vectors; each of them gets the sum.
// expect: 1 \+ 2 \+ 3 \+ 4 = 10, a million times
#include <hocket/hocket.hpp>

#include <cstdio>
#include <vector>

int main() {
  hocket::local::run(4, [](auto comm) {
    const std::vector<double> mine(1'000'000, comm.rank() + 1.0);
    std::vector<double> sum(mine.size());
    hocket::all_reduce(comm, mine, sum);
    if (comm.rank() == 0) std::printf("1 + 2 + 3 + 4 = %g, a million times\n", sum.back());
  });
}
