// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls with counts per rank between processes, by all algorithms that the transport supports, over shared memory and
/// TCP.
#include "support/abort_latency.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

namespace {

using namespace ucx_test;
using hocket::with;
using lengths = std::vector<std::size_t>;
using numbers = std::vector<std::uint64_t>;

constexpr route routes[] = {shared_memory, posix_memory, network};
/// Elements of the longest block: none, few, blocks that together fit into a staging region of 256 KiB, longer ones.
constexpr std::size_t scales[] = {0, 1, 3, 1000, 20'001, 150'001};

/// Returns how many elements rank s sends to rank d; some send none.
std::size_t count(std::size_t scale, std::size_t s, std::size_t d) { return (s + 2 * d) % 3 * scale / 2; }

std::size_t sum_of(const lengths& all) { return std::accumulate(all.begin(), all.end(), std::size_t{0}); }

/// Calls `call(options)` without an algorithm, with each one, and with checksums.
template <class... Messages, class Call>
void for_each_way(const communicator& comm, bool direct_fits, Call call) {
  call(with());
  (call(with(Messages{})), ...);
  call(with(hocket::require(hocket::checksummed)));
  if (has_windows(comm) && direct_fits) call(with(hocket::direct));
}

void check_counts(const communicator& comm, findings& found, std::size_t scale) {
  const auto ranks = static_cast<std::size_t>(comm.size()), self = static_cast<std::size_t>(comm.rank());
  const std::string of = " of up to " + std::to_string(scale);
  lengths blocks, to, from;
  numbers gathered, given, taken;
  for (std::size_t r = 0; r < ranks; ++r) {
    blocks.push_back(count(scale, r, 1));
    to.push_back(count(scale, self, r));
    from.push_back(count(scale, r, self));
    for (std::size_t i = 0; i < blocks[r]; ++i) gathered.push_back(element(static_cast<int>(r), i));
    for (std::size_t i = 0; i < to[r]; ++i) given.push_back(element(static_cast<int>(self * ranks + r), i));
    for (std::size_t i = 0; i < from[r]; ++i) taken.push_back(element(static_cast<int>(r * ranks + self), i));
  }
  const std::size_t limit = staging_limit(comm);
  const bool direct_fits = limit == 0 || sum_of(blocks) * sizeof(std::uint64_t) <= limit;
  const numbers own = vector_of(comm.rank(), blocks[self]);
  for_each_way<hocket::ring_t, hocket::pairwise_t>(comm, direct_fits, [&](auto options) {
    numbers out(gathered.size(), 1);
    hocket::all_gather_v(comm, own, out, hocket::counts{blocks}, options);
    found.equal(out, gathered, "all_gather_v" + of);
  });

  const numbers whole = vector_of(comm.rank(), sum_of(blocks));
  const numbers sums = ucx_test::sum_of(comm.size(), whole.size());
  std::size_t begin = 0;
  for (std::size_t r = 0; r < self; ++r) begin += blocks[r];
  const auto first = sums.begin() + static_cast<std::ptrdiff_t>(begin);
  const numbers block(first, first + static_cast<std::ptrdiff_t>(blocks[self]));
  for_each_way<hocket::ring_t, hocket::pairwise_t>(comm, direct_fits, [&](auto options) {
    numbers out(blocks[self], 1);
    hocket::reduce_scatter_v(comm, whole, out, hocket::counts{blocks}, std::plus<>{}, options);
    found.equal(out, block, "reduce_scatter_v" + of);
  });

  for (int root = 0; root < comm.size(); ++root) {
    const bool is_root = comm.rank() == root;
    for_each_way<hocket::flat_t>(comm, direct_fits, [&](auto options) {
      numbers all(is_root ? gathered.size() : 0, 1), mine(blocks[self], 1);
      hocket::gather_v(comm, own, all, hocket::counts{blocks}, hocket::root{root}, options);
      found.equal(all, is_root ? gathered : numbers(), "gather_v" + of);
      hocket::scatter_v(comm, all, mine, hocket::counts{blocks}, hocket::root{root}, options);
      found.equal(mine, own, "scatter_v" + of);
    });
  }

  for_each_way<hocket::pairwise_t>(comm, limit == 0, [&](auto options) {
    numbers out(taken.size(), 1);
    hocket::all_to_all_v(comm, given, out, hocket::send_counts{to}, hocket::receive_counts{from}, options);
    found.equal(out, taken, "all_to_all_v" + of);
  });
  if (!has_windows(comm) || limit == 0) return;
  numbers out(taken.size(), 1);
  found.fails(hocket::errc::invalid_argument, "direct with counts that are not known on all ranks", [&] {
    hocket::all_to_all_v(comm, given, out, hocket::send_counts{to}, hocket::receive_counts{from}, with(hocket::direct));
  });
}

}  // namespace

TEST_CASE("calls with counts between processes give exact results by each algorithm") {
  for (const route& way : routes) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [](communicator& comm, findings& found) {
              for (const std::size_t scale : scales) check_counts(comm, found, scale);
            }) == "");
    }
  }
}

namespace {

constexpr const char* unsaid = "does not name the peer's call";
constexpr bool is_slow = hocket_test::sanitizer_slowdown > 1;

}  // namespace

TEST_CASE("the error names the rank that sends another number of elements than its peer expects, and both numbers") {
  for (const route& way : routes) {
    for (const std::size_t sent : {std::size_t{0}, std::size_t{7}, std::size_t{5000}, std::size_t{300'000}}) {
      INFO(way.name << ", " << sent << " elements");
      const auto body = [&](communicator& comm, findings& found) {
        meet_all(comm);
        lengths to(3, 5);
        const lengths from(3, 5);
        if (comm.rank() == 1) to[2] = sent;
        const numbers in(sum_of(to), 1);
        numbers out(15);
        const auto begin = std::chrono::steady_clock::now();
        const auto cause = found.fails(hocket::errc::mismatch, "all_to_all_v", [&] {
          hocket::all_to_all_v(comm, in, out, hocket::send_counts{to}, hocket::receive_counts{from});
          hocket::barrier(comm);  // a rank that waits for no other gets the error in the next call
        });
        found.expect(std::chrono::steady_clock::now() - begin < 5s, "took more than 5 s");
        const std::string says = "the peer sent " + std::to_string(8 * sent) + " bytes where 40 were expected";
        found.expect(cause.message().find(says) != std::string::npos, "says: " + cause.message());
        found.expect(cause.message().find("on rank 1, send_counts for rank 2 must equal") != std::string::npos,
                     "does not name the two: " + cause.message());
        found.expect(cause.message().find("rank 1's call is all_to_all_v of") != std::string::npos,
                     unsaid + (": " + cause.message()));
      };
      // A receiver waits only some milliseconds for the message and the answer of a busy sender.
      const auto is_busy = [](const std::string& wrong) {
        return wrong.find("more than 40 bytes") != std::string::npos || wrong.find(unsaid) != std::string::npos;
      };
      std::string wrong;
      for (int tries = 0; tries < 10; ++tries) {
        wrong = run_ranks(3, way, body);
        if (!is_busy(wrong)) break;
      }
      if (is_slow && is_busy(wrong)) continue;
      CHECK(wrong == "");
    }
  }
}
