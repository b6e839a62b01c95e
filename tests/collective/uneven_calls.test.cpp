// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls with per-rank counts: several calls in flight, and refused calls.
#include "collective/uneven.hpp"

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/plan/listed.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

using namespace hocket_test;

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
