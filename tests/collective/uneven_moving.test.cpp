// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// all_gather_v, all_to_all_v, gather_v and scatter_v move every byte to its place.
//
// The tests cover all pairs of (plan, ranks), (plan, lengths), (plan, placement) and (plan, type), for elements of 3
// and 4 bytes.
#include "collective/uneven.hpp"

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/scatter_v.hpp>

#include <set>
#include <span>
#include <string>
#include <vector>

using namespace hocket_test;

namespace {

template <class T>
void check_all_gather_v() {
  for (const int ranks : rank_counts) {
    check_uneven<T>(
        ranks, {plan::ring_all_gather{}, plan::pairwise_all_gather{}, plan::direct_all_gather{}}, moves_only{},
        [](thread_rank& me, std::span<const T> in, std::span<T> out, const lengths& counts, const auto& options) {
          hocket::all_gather_v(me.comm(), in, out, hocket::counts{counts}, options);
        });
  }
}

template <class T>
void check_gather_v(int ranks, int root) {
  check_uneven<T>(
      ranks, {plan::flat_gather{root}, plan::direct_gather{root}}, moves_only{},
      [&](thread_rank& me, std::span<const T> in, std::span<T> out, const lengths& counts, const auto& options) {
        hocket::gather_v(me.comm(), in, out, hocket::counts{counts}, hocket::root{root}, options);
      });
}

template <class T>
void check_scatter_v(int ranks, int root) {
  check_uneven<T>(
      ranks, {plan::flat_scatter{root}, plan::direct_scatter{root}}, moves_only{},
      [&](thread_rank& me, std::span<const T> in, std::span<T> out, const lengths& counts, const auto& options) {
        hocket::scatter_v(me.comm(), in, out, hocket::counts{counts}, hocket::root{root}, options);
      });
}

template <class Check>
void for_some_roots(Check check) {
  for (const int ranks : rank_counts) {
    for (const int root : std::set<int>{0, ranks / 2, ranks - 1}) check(ranks, root);
  }
}

template <class T>
void check_all_to_all_v(int ranks) {
  const std::vector<plan::any_algorithm> plans = {plan::pairwise_all_to_all{}, plan::direct_all_to_all{}};
  const auto count = static_cast<std::uint32_t>(ranks);
  on_ranks(ranks, [&](thread_rank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    std::size_t turn = 0;
    for (const std::vector<lengths>& table : tables_for(ranks)) {
      const lengths sent = table[rank], received = column_of(table, rank);
      std::vector<T> expected;
      for (std::size_t s = 0; s < table.size(); ++s) {
        const auto block = samples<T>(static_cast<int>(s), table[s][rank], offsets_of(table[s])[rank]);
        expected.insert(expected.end(), block.begin(), block.end());
      }
      for (const plan::any_algorithm& chosen : plans) {
        me.at([&] { return std::string(chosen.name()) + ", from this rank " + text_of(sent); });
        const std::vector<T> input = samples<T>(me.rank(), sum_of(sent));
        guarded<T> in(input, turn % 3);
        guarded<T> out(expected.size(), ++turn % 2);
        trace steps;
        hocket::all_to_all_v(me.comm(), in.elements(), out.elements(), hocket::send_counts{sent},
                             hocket::receive_counts{received},
                             hocket::with(hocket::algorithm(chosen), hocket::observe_steps(steps.observer())));
        const std::span<const T> found = out.elements();
        me.check(same_bytes(found, std::span<const T>(expected)),
                 [&] { return first_difference(found, std::span<const T>(expected)); });
        me.check(in.intact() && out.intact(), "wrote outside the buffers");
        me.check(same_bytes(std::span<const T>(in.elements()), std::span<const T>(input)), "changed `in`");
        const lengths in_offsets = offsets_of(sent), out_offsets = offsets_of(received);
        const auto in_layout = plan::layout::given(in_offsets.data(), count, 1);
        const auto out_layout = plan::layout::given(out_offsets.data(), count, 1);
        const std::string wrong = difference(steps.events(), {chosen, ranks, me.rank(), 0, sizeof(T),
                                                              static_cast<std::size_t>(-1), &in_layout, &out_layout});
        me.check(wrong.empty(), wrong);
      }
    }
  });
}

}  // namespace

TEST_CASE("gather_v copies every rank's block to the root") {
  for_some_roots(check_gather_v<std::int32_t>);
  for_some_roots(check_gather_v<triple>);
}

TEST_CASE("scatter_v copies a block of the root to every rank") {
  for_some_roots(check_scatter_v<std::int32_t>);
  for_some_roots(check_scatter_v<triple>);
}

TEST_CASE("all_gather_v copies every rank's block to every rank") {
  check_all_gather_v<float>();
  check_all_gather_v<triple>();
}

TEST_CASE("all_to_all_v exchanges blocks of any length between all pairs of ranks") {
  for (const int ranks : rank_counts) {
    check_all_to_all_v<float>(ranks);
    check_all_to_all_v<triple>(ranks);
  }
}
