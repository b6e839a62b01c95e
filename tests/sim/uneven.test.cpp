// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls with per-rank counts between simulated ranks give correct results, in the time that the plan costs.
#include <hocket/sim.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace plan = hocket::plan;
namespace sim = hocket::sim;
using lengths = std::vector<std::size_t>;
using numbers = std::vector<std::uint32_t>;

/// Number of elements that rank s sends to rank d; some numbers are 0.
std::size_t count(int s, int d) {
  return static_cast<std::size_t>((5 * s + 3 * d) % 11 < 3 ? 0 : (7 * s + 13 * d) % 29);
}

std::size_t place_of(int rank) { return static_cast<std::size_t>(rank); }

std::size_t sum_of(const lengths& all) { return std::accumulate(all.begin(), all.end(), std::size_t{0}); }

}  // namespace

TEST_CASE("calls with counts give correct results between simulated ranks", "[sim][uneven]") {
  for (int ranks = 1; ranks <= 64; ranks += ranks < 9 ? 1 : 11) {
    INFO(ranks << " ranks");
    sim::world world(ranks);
    lengths blocks(place_of(ranks)), offsets(place_of(ranks) + 1);
    for (int r = 0; r < ranks; ++r) blocks[place_of(r)] = count(r, 1);
    std::partial_sum(blocks.begin(), blocks.end(), offsets.begin() + 1);
    std::vector<numbers> own(place_of(ranks)), all(place_of(ranks)), sums(place_of(ranks)), given(place_of(ranks)),
        taken(place_of(ranks));
    std::vector<hocket::request> requests;
    const auto run = [&] {
      world.run();
      for (auto& each : requests) each.wait();
      requests.clear();
    };

    for (int r = 0; r < ranks; ++r) {
      own[place_of(r)].assign(blocks[place_of(r)], static_cast<std::uint32_t>(r));
      all[place_of(r)].assign(offsets.back(), 999);
      requests.push_back(
          hocket::all_gather_v_async(world.comm(r), own[place_of(r)], all[place_of(r)], hocket::counts{blocks}));
    }
    run();
    const auto layout = plan::layout::given(offsets.data(), static_cast<std::uint32_t>(ranks), 1);
    const double expected =
        plan::price(plan::ring_all_gather{}, ranks, layout, sizeof(std::uint32_t), plan::example_machine).seconds;
    CHECK(world.now() == Approx(expected));

    for (int r = 0; r < ranks; ++r) {
      sums[place_of(r)].resize(blocks[place_of(r)]);
      requests.push_back(hocket::reduce_scatter_v_async(world.comm(r), all[place_of(r)], sums[place_of(r)],
                                                        hocket::counts{blocks}, std::plus<>{},
                                                        hocket::with(hocket::ring)));
    }
    run();

    const hocket::root root{ranks / 2};
    numbers gathered(offsets.back());
    std::vector<numbers> scattered(place_of(ranks));
    numbers nothing;
    for (int r = 0; r < ranks; ++r) {
      numbers& out = r == root.rank ? gathered : nothing;
      requests.push_back(hocket::gather_v_async(world.comm(r), own[place_of(r)], out, hocket::counts{blocks}, root));
    }
    run();
    CHECK(gathered == all[0]);
    for (int r = 0; r < ranks; ++r) {
      const numbers& in = r == root.rank ? gathered : nothing;
      scattered[place_of(r)].resize(blocks[place_of(r)]);
      requests.push_back(
          hocket::scatter_v_async(world.comm(r), in, scattered[place_of(r)], hocket::counts{blocks}, root));
    }
    run();
    CHECK(scattered == own);

    for (int s = 0; s < ranks; ++s) {
      lengths to, from;
      for (int d = 0; d < ranks; ++d) {
        to.push_back(count(s, d));
        from.push_back(count(d, s));
        given[place_of(s)].insert(given[place_of(s)].end(), to.back(), static_cast<std::uint32_t>(100 * s + d));
      }
      taken[place_of(s)].resize(sum_of(from));
      requests.push_back(hocket::all_to_all_v_async(world.comm(s), given[place_of(s)], taken[place_of(s)],
                                                    hocket::send_counts{to}, hocket::receive_counts{from}));
    }
    run();

    std::size_t wrong = 0;
    for (int r = 0; r < ranks; ++r) {
      for (int s = 0; s < ranks; ++s) {
        for (std::size_t i = offsets[place_of(s)]; i < offsets[place_of(s) + 1]; ++i) {
          wrong += all[place_of(r)][i] == static_cast<std::uint32_t>(s) ? 0U : 1U;
        }
      }
      for (const std::uint32_t each : sums[place_of(r)])
        wrong += each == static_cast<std::uint32_t>(ranks * r) ? 0U : 1U;
      std::size_t at = 0;
      for (int s = 0; s < ranks; ++s) {
        for (std::size_t i = 0; i < count(s, r); ++i) {
          wrong += taken[place_of(r)][at++] == static_cast<std::uint32_t>(100 * s + r) ? 0U : 1U;
        }
      }
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a simulated rank that sends too much causes a mismatch", "[sim][uneven]") {
  sim::world world(3);
  std::vector<numbers> in(3), out(3);
  std::vector<hocket::request> requests;
  for (int r = 0; r < 3; ++r) {
    lengths to(3, 4);
    const lengths from(3, 4);
    if (r == 1) to[2] = 6;
    in[place_of(r)].resize(sum_of(to));
    out[place_of(r)].resize(12);
    requests.push_back(hocket::all_to_all_v_async(world.comm(r), in[place_of(r)], out[place_of(r)],
                                                  hocket::send_counts{to}, hocket::receive_counts{from}));
  }
  try {
    world.run();
    for (auto& each : requests) each.wait();
    FAIL("no error");
  } catch (const hocket::error& found) {
    CHECK(found.code() == hocket::errc::mismatch);
    CHECK_THAT(found.what(), Catch::Matchers::Contains("the peer sent 24 bytes where 16 were expected"));
  }
}
