// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Collectives over memory of devices, staged through the host, between threads.
#include "collective/device/devices.hpp"

#include <numeric>

using namespace hocket_test;
namespace cuda = hocket::cuda;
using hocket::with;

TEST_CASE("first") {
  for (const int ranks : {1, 2, 3, 5}) {
    host_machine machine;
    std::vector<where_rank_runs> where;
    for (int rank = 0; rank < ranks; ++rank) where.push_back({rank, 0});
    processes all(machine, where);
    on_ranks(ranks, [&](thread_rank& me) {
      host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
      driver.be_lazy(static_cast<unsigned>(me.rank()));
      const rank_device mine(driver);
      for (const std::size_t size : {0u, 1u, 7u, 1000u, 4097u}) {
        placed_vector<double> in(driver, size, memory_space::device), out(driver, size, memory_space::device);
        std::vector<double> values(size, 1.0 + me.rank()), result;
        in.write(mine.stream(), values);
        hocket::all_reduce(me.comm(), cuda::device(in.span()), cuda::device(out.span()), std::plus<>{},
                           with(mine.order(), cuda::staging{1024}));
        out.read(mine.stream(), result);
        driver.finish_streams();
        me.check(result == std::vector<double>(size, ranks * (ranks + 1) / 2.0), "wrong sum");
        me.check(in.intact() && out.intact(), "wrote beside");
      }
    });
    check_clean(machine, all);
  }
}
