// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Four processes, each a rank, add up their vectors; each of them gets the sum. Started by hand, the program starts
// itself once more for each rank. Under a launcher, on one host or several, `connect` is sufficient.
// needs: ucx
// expect: 1 \+ \.\.\. \+ 4 = 10, a million times
#include <hocket/bootstrap/launch.hpp>
#include <hocket/ucx.hpp>

#include <cstdio>
#include <vector>

int main(int count, char** arguments) {
  if (!hocket::launch::is_rank()) return hocket::launch::spawn(4, {arguments, arguments + count});

  auto comm = hocket::ucx::connect();
  const std::vector<double> mine(1'000'000, comm.rank() + 1.0);
  std::vector<double> sum(mine.size());
  hocket::all_reduce(comm, mine, sum);
  if (comm.rank() == 0) std::printf("1 + ... + %d = %g, a million times\n", comm.size(), sum.back());
}
