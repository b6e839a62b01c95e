// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls with per-rank counts: several calls in flight, and refused calls.
#include "collective/uneven.hpp"

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/collective/scatter_v.hpp>
#include <hocket/plan/listed.hpp>

#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

hocket::detail::call_request request_with(const lengths& blocks) {
  hocket::detail::call_request request;
  hocket::detail::describe_blocks(hocket::detail::blocks_of(hocket::counts{blocks}), request);
  return request;
}

/// Two different lists of short lengths for 6 ranks whose requests are equal, because they have the same hash.
std::pair<lengths, lengths> lengths_with_one_hash() {
  constexpr std::size_t longest = 31;
  std::map<std::uint32_t, lengths> known;
  for (std::size_t code = 0; code < 1U << 20U; ++code) {
    const std::size_t a = code % 32, b = code / 32 % 32, c = code / 1024 % 32, d = code / 32'768;
    if (a + b + c + d > 2 * longest || a + b + c + d < longest) continue;
    const lengths blocks{longest, a, b, c, d, 2 * longest - a - b - c - d};
    const auto [at, is_new] = known.try_emplace(request_with(blocks).lengths_signature, blocks);
    if (!is_new) return {at->second, blocks};
  }
  throw std::logic_error("no two lists have the same hash");
}

/// Elements of one byte, because threads send at most 32 bytes without a machine.
void check_short_calls(thread_rank& me, const lengths& blocks) {
  const auto rank = static_cast<std::size_t>(me.rank());
  const bool is_root = rank == 0;
  std::vector<std::uint8_t> whole(sum_of(blocks));
  std::iota(whole.begin(), whole.end(), 1);
  const lengths offsets = offsets_of(blocks);
  const std::span<const std::uint8_t> block = std::span(whole).subspan(offsets[rank], blocks[rank]);
  const auto is_block = [&](const std::vector<std::uint8_t>& found, std::size_t factor) {
    for (std::size_t i = 0; i < block.size(); ++i) {
      if (found[i] != static_cast<std::uint8_t>(factor * block[i])) return false;
    }
    return true;
  };
  std::vector<std::uint8_t> all(whole.size()), rooted(is_root ? whole.size() : 0), sums(blocks[rank]),
      own(blocks[rank]);
  hocket::all_gather_v(me.comm(), block, all, hocket::counts{blocks});
  hocket::gather_v(me.comm(), block, rooted, hocket::counts{blocks});
  hocket::reduce_scatter_v(me.comm(), whole, sums, hocket::counts{blocks});
  hocket::scatter_v(me.comm(), is_root ? std::span<const std::uint8_t>(whole) : std::span<const std::uint8_t>(), own,
                    hocket::counts{blocks});
  me.check(all == whole, "all_gather_v");
  me.check(!is_root || rooted == whole, "gather_v");
  me.check(is_block(sums, blocks.size()), "reduce_scatter_v");
  me.check(is_block(own, 1), "scatter_v");
}

}  // namespace

TEST_CASE("short calls keep the lengths of their blocks apart, also those with the same hash") {
  const auto [one, other] = lengths_with_one_hash();
  CAPTURE(text_of(one), text_of(other));
  REQUIRE(request_with(one) == request_with(other));
  on_ranks(static_cast<int>(one.size()), [&](thread_rank& me) {
    for (int turn = 0; turn < 4; ++turn) {
      for (const lengths* each : {&one, &one, &other, &other}) check_short_calls(me, *each);
    }
  });
}

TEST_CASE("short calls that repeat move every byte, with empty blocks too") {
  for (const int ranks : rank_counts) {
    on_ranks(ranks, [&](thread_rank& me) {
      for (int seed = 0; seed < 8; ++seed) {
        const lengths blocks = random_lengths(static_cast<std::size_t>(ranks), 9, seed);
        for (int turn = 0; turn < 3; ++turn) check_short_calls(me, blocks);
      }
    });
  }
}

TEST_CASE("counts may be destroyed as soon as an _async call has returned, and calls in flight do not interfere") {
  for (const int ranks : {1, 2, 3, 8}) {
    on_ranks(ranks, [&](thread_rank& me) {
      const auto rank = static_cast<std::size_t>(me.rank());
      const auto count = static_cast<std::size_t>(ranks);
      constexpr std::size_t calls = 12;  // more than there are slots
      std::vector<std::vector<std::int32_t>> own(calls), all(calls), given(calls), taken(calls), terms(calls),
          mine(calls);
      std::vector<hocket::request> requests;
      const auto block = [](std::size_t r, std::size_t k) { return (r + k) % 4 * 5; };
      const auto blocks = [&](std::size_t k) {
        lengths result;
        for (std::size_t r = 0; r < count; ++r) result.push_back(block(r, k));
        return result;
      };
      for (std::size_t k = 0; k < calls; ++k) {
        own[k].assign(block(rank, k), static_cast<std::int32_t>(100 * k + rank));
        all[k].resize(sum_of(blocks(k)));
        requests.push_back(hocket::all_gather_v_async(me.comm(), own[k], all[k], hocket::counts{blocks(k)}));
        given[k].assign(count * block(rank, k), static_cast<std::int32_t>(rank));
        taken[k].resize(sum_of(blocks(k)));
        const lengths same(count, block(rank, k));
        requests.push_back(hocket::all_to_all_v_async(me.comm(), given[k], taken[k], hocket::send_counts{same},
                                                      hocket::receive_counts{blocks(k)}));
        terms[k].assign(sum_of(blocks(k)), static_cast<std::int32_t>(k));
        mine[k].resize(block(rank, k));
        requests.push_back(hocket::reduce_scatter_v_async(me.comm(), terms[k], mine[k], hocket::counts{blocks(k)}));
        if (k % 3 == 2) requests.back().wait();  // while earlier ones are in flight
      }
      for (hocket::request& each : requests) each.wait();
      for (std::size_t k = 0; k < calls; ++k) {
        std::size_t at = 0;
        for (std::size_t r = 0; r < count; ++r) {
          for (std::size_t i = 0; i < block(r, k); ++i, ++at) {
            me.check(all[k][at] == static_cast<std::int32_t>(100 * k + r), "all_gather_v");
            me.check(taken[k][at] == static_cast<std::int32_t>(r), "all_to_all_v");
          }
        }
        for (const std::int32_t sum : mine[k]) {
          me.check(sum == static_cast<std::int32_t>(k * count), "reduce_scatter_v");
        }
      }
    });
  }
}

TEST_CASE("counts that do not match their buffers are refused before anything is sent") {
  on_ranks(2, [](thread_rank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    std::vector<float> in(rank + 1), out(3), five(5);
    const auto refuses = [&](const char* says, auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(found && std::string(found->what()).find(says) != std::string::npos,
               [&] { return std::string("the message lacks '") + says + "': " + (found ? found->what() : ""); });
    };
    const lengths right{1, 2}, three{1, 2, 3}, other{2, 1}, vast{static_cast<std::size_t>(-1), 4};
    const auto gather = [&](const lengths& counts, auto& to) {
      return [&] { hocket::all_gather_v(me.comm(), in, to, hocket::counts{counts}); };
    };
    refuses("counts has 3 numbers; there must be one for each of the 2 ranks", gather(three, out));
    refuses("the count of this rank is", gather(other, out));
    refuses("out has 5 elements; the sum of counts is 3", gather(right, five));
    refuses("more than memory can hold", gather(vast, out));
    refuses("overlap", [&] {
      hocket::all_gather_v(me.comm(), std::span(out).subspan(1 - rank, rank + 1), out, hocket::counts{right});
    });
    std::vector<float> pair(2), one(1);
    refuses("in has 2 elements; the sum of counts is 3",
            [&] { hocket::reduce_scatter_v(me.comm(), pair, in, hocket::counts{right}); });
    refuses("overlap", [&] {
      hocket::all_to_all_v(me.comm(), pair, pair, hocket::send_counts{lengths{1, 1}},
                           hocket::receive_counts{lengths{1, 1}});
    });
    refuses("for this rank itself", [&] {
      lengths to{1, 1};
      to[rank] = 0;
      hocket::all_to_all_v(me.comm(), one, out, hocket::send_counts{to},
                           hocket::receive_counts{rank == 0 ? right : other});
    });
    refuses("forwards or stores", [&] {
      hocket::all_to_all_v(me.comm(), pair, five, hocket::send_counts{lengths{1, 1}},
                           hocket::receive_counts{rank == 0 ? lengths{1, 4} : lengths{4, 1}},
                           hocket::with(hocket::algorithm(plan::pairwise_all_to_all{.in_place = true})));
    });
    // Describes both blocks as chunks of the length of block 0.
    plan::listed strange("strange", {plan::collective_kind::all_gather}, 2, {});
    strange.lane(0) = {plan::send(1, {0}, plan::in(0)), plan::copy({0}, plan::in(0), plan::out(0)),
                       plan::receive(1, {0}, plan::out(1))};
    strange.lane(1) = {plan::send(0, {0}, plan::in(1)), plan::copy({0}, plan::in(1), plan::out(1)),
                       plan::receive(0, {0}, plan::out(0))};
    refuses("to the place of another block, but block lengths differ", [&] {
      hocket::all_gather_v(me.comm(), std::span(out).first(rank + 1), std::span(five).first(3), hocket::counts{right},
                           hocket::with(hocket::algorithm(strange)));
    });
    std::error_code code;
    hocket::all_gather_v(me.comm(), in, five, hocket::counts{right}, hocket::with(), code);
    me.check(code == hocket::errc::invalid_argument, "the code");
    hocket::all_gather_v(me.comm(), in, out, hocket::counts{right}, hocket::with(), code);
    me.check(!code, "a call that was refused has changed the communicator");
  });
}
