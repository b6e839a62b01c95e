// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Staged collectives between processes over UCX, each with the test double as its device.
#include "collective/device/devices.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"
#include "ucx/ranks.hpp"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

using namespace ucx_test;
namespace cuda = hocket::cuda;
using hocket::with;
using hocket_test::host_driver;
using hocket_test::host_machine;
using hocket_test::memory_space;
using hocket_test::placed_vector;
using hocket_test::rank_device;

namespace {

constexpr cuda::staging small_chunks{4096};

/// Runs each collective once, with `size` elements or with blocks of `size` elements.
void check_all(communicator& comm, const rank_device& mine, std::size_t size, findings& found) {
  const auto p = static_cast<std::size_t>(comm.size());
  const int rank = comm.rank();
  host_driver& driver = mine.driver();
  const auto options = with(mine.order(), small_chunks);
  const std::string what = " of " + std::to_string(size);
  placed_vector<std::uint64_t> one(driver, size, memory_space::device), other(driver, size, memory_space::device);
  placed_vector<std::uint64_t> all(driver, p * size, memory_space::device),
      many(driver, p * size, memory_space::device);
  const auto own = vector_of(rank, size), sum = sum_of(comm.size(), size), sums = sum_of(comm.size(), p * size);
  const auto at = [&](std::size_t block) { return static_cast<std::ptrdiff_t>(block * size); };
  std::vector<std::uint64_t> gathered, values;
  for (int each = 0; each < comm.size(); ++each) {
    const auto theirs = vector_of(each, size);
    gathered.insert(gathered.end(), theirs.begin(), theirs.end());
  }

  one.write(mine.stream(), own);
  hocket::all_reduce(comm, cuda::device(one.span()), cuda::device(other.span()), std::plus<>{}, options);
  other.read(mine.stream(), values);
  driver.finish_streams();
  found.expect(values == sum, "all_reduce" + what);

  hocket::all_gather(comm, cuda::device(one.span()), cuda::device(all.span()), options);
  all.read(mine.stream(), values);
  driver.finish_streams();
  found.expect(values == gathered, "all_gather" + what);

  all.write(mine.stream(), vector_of(rank, p * size));
  hocket::reduce_scatter(comm, cuda::device(all.span()), cuda::device(other.span()), std::plus<>{}, options);
  other.read(mine.stream(), values);
  driver.finish_streams();
  const auto r = static_cast<std::size_t>(rank);
  found.expect(values == std::vector(sums.begin() + at(r), sums.begin() + at(r + 1)), "reduce_scatter" + what);

  hocket::all_to_all(comm, cuda::device(all.span()), cuda::device(many.span()), options);
  many.read(mine.stream(), values);
  driver.finish_streams();
  std::vector<std::uint64_t> exchanged;
  for (int each = 0; each < comm.size(); ++each) {
    const auto theirs = vector_of(each, p * size);
    exchanged.insert(exchanged.end(), theirs.begin() + at(r), theirs.begin() + at(r + 1));
  }
  found.expect(values == exchanged, "all_to_all" + what);

  hocket::broadcast(comm, cuda::device(one.span()), hocket::root{comm.size() - 1}, options);
  one.read(mine.stream(), values);
  driver.finish_streams();
  found.expect(values == vector_of(comm.size() - 1, size), "broadcast" + what);
  found.expect(one.intact() && other.intact() && all.intact() && many.intact(), "wrote outside the buffers" + what);
}

}  // namespace

TEST_CASE("staged collectives between processes give correct results and leak nothing") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {1, 2, 3}) {
      const std::string wrong = run_worlds(ranks, way, [&](const world& where, findings& found) {
        host_machine machine;
        host_driver driver(machine, where.rank);
        driver.be_lazy(static_cast<unsigned>(where.rank));
        {
          auto comm = hocket::ucx::connect(where);
          const rank_device mine(driver);
          for (const std::size_t size : {0U, 1U, 511U, 512U, 513U, 20'001U}) check_all(comm, mine, size, found);
          // More than peers can read at the same time, in chunks of the default size.
          placed_vector<float> large(driver, 3'000'001, memory_space::device);
          large.write(mine.stream(), std::vector<float>(large.size(), static_cast<float>(comm.rank() + 1)));
          hocket::all_reduce(comm, hocket::in_place(cuda::device(large.span())), std::plus<>{}, with(mine.order()));
          std::vector<float> values;
          large.read(mine.stream(), values);
          driver.finish_streams();
          const auto sum = static_cast<float>(ranks * (ranks + 1)) / 2;
          found.expect(values == std::vector<float>(large.size(), sum), "a large all_reduce");
        }
        found.equal(driver.pinned(), 0, "pinned memory left");
        found.equal(driver.streams(), 0, "streams left");
        found.equal(driver.events(), 0, "events left");
        found.equal(machine.allocated(), 0, "memory left");
      });
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(wrong == "");
    }
  }
}

TEST_CASE("a driver failure of one process is reported with its rank on all") {
  for (const route& way : {shared_memory, network}) {
    const std::string wrong = run_worlds(3, way, [&](const world& where, findings& found) {
      host_machine machine;
      host_driver driver(machine, where.rank);
      auto comm = hocket::ucx::connect(where);
      meet_all(comm);
      const rank_device mine(driver);
      placed_vector<float> buffer(driver, 5000, memory_space::device);
      if (comm.rank() == 1) driver.inject(30, hocket_test::status::illegal_address);
      const hocket::failure said = found.fails(hocket::errc::system, "all_reduce", [&] {
        // No rank is still in the barrier of meet_all when rank 1 fails: the failure would end that barrier, too.
        std::vector<int> ready(1);
        if (comm.rank() != 1) hocket::send(comm, ready, hocket::peer{1});
        for (const int other : {0, 2}) {
          if (comm.rank() == 1) hocket::recv(comm, ready, hocket::peer{other});
        }
        hocket::all_reduce(comm, hocket::in_place(cuda::device(buffer.span())), std::plus<>{},
                           with(mine.order(), small_chunks));
        hocket::barrier(comm);
      });
      found.expect(said.message().find("error 700") != std::string::npos, "no code in: " + said.message());
      found.expect(comm.rank() == 1 || said.message().find("rank 1 reports") != std::string::npos,
                   "no rank named in: " + said.message());
    });
    INFO(way.name);
    CHECK(wrong == "");
  }
}
