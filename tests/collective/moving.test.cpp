// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// all_gather, all_to_all, broadcast, gather and scatter move every byte to its place; a barrier holds all ranks back.
//
// The tests cover all pairs of (plan, ranks), (plan, size), (plan, placement) and, for element sizes of 1, 2, 4, 24 and
// 40, (plan, type); calls with a root with each root.
#include "collective/cases.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/operation/exact_sum.hpp>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;

namespace {

/// The last one is divided into several messages, for small elements.
template <class T>
const std::vector<std::size_t> block_sizes = {0, 1, 3, 8, 255, 1003, sizeof(T) <= 4 ? 40'001U : 4'001U};

template <class T>
void check_all_gather(int ranks) {
  const auto cases =
      pair_up({plan::ring_all_gather{}, plan::pairwise_all_gather{}, plan::direct_all_gather{}}, block_sizes<T>);
  const auto own_block = [](int rank, std::span<T> whole, std::size_t block, std::size_t) {
    return std::pair(whole.subspan(static_cast<std::size_t>(rank) * block, block), whole);
  };
  check_cases<T>(ranks, cases, moves_only{}, own_block,
                 [](thread_rank& me, const call_case&, std::span<const T> in, std::span<T> out, const auto& options) {
                   hocket::all_gather(me.comm(), in, out, options);
                 });
}

template <class T>
void check_all_to_all(int ranks) {
  const auto cases = pair_up({plan::pairwise_all_to_all{}, plan::direct_all_to_all{}}, block_sizes<T>);
  const auto one_buffer = [](int, std::span<T> whole, std::size_t, std::size_t) { return std::pair(whole, whole); };
  check_cases<T>(ranks, cases, moves_only{}, one_buffer,
                 [](thread_rank& me, const call_case&, std::span<const T> in, std::span<T> out, const auto& options) {
                   hocket::all_to_all(me.comm(), in, out, options);
                 });
}

template <class T>
void check_broadcast(int ranks) {
  for (int root = 0; root < ranks; ++root) {
    std::vector<call_case> cases;
    for (const std::size_t size : block_sizes<T>) {
      cases.push_back({plan::binomial_broadcast{root}, size, true, size % 2});
      cases.push_back({plan::direct_broadcast{root}, size, true, size % 3 % 2});
    }
    const auto one_buffer = [](int, std::span<T> whole, std::size_t, std::size_t) { return std::pair(whole, whole); };
    check_cases<T>(ranks, cases, moves_only{}, one_buffer,
                   [&](thread_rank& me, const call_case&, std::span<const T>, std::span<T> out, const auto& options) {
                     hocket::broadcast(me.comm(), out, hocket::root{root}, options);
                   });
  }
}

template <class T>
void check_gather(int ranks) {
  for (int root = 0; root < ranks; ++root) {
    const auto cases =
        pair_up({plan::flat_gather{root}, plan::binomial_gather{root}, plan::direct_gather{root}}, block_sizes<T>);
    const auto own_block = [](int rank, std::span<T> whole, std::size_t block, std::size_t result) {
      const std::size_t begin = result > 0 ? static_cast<std::size_t>(rank) * block : 0;
      return std::pair(whole.subspan(begin, block), whole.first(result));
    };
    check_cases<T>(ranks, cases, moves_only{}, own_block,
                   [&](thread_rank& me, const call_case&, std::span<const T> in, std::span<T> out,
                       const auto& options) { hocket::gather(me.comm(), in, out, hocket::root{root}, options); });
  }
}

template <class T>
void check_scatter(int ranks) {
  for (int root = 0; root < ranks; ++root) {
    const auto cases =
        pair_up({plan::flat_scatter{root}, plan::binomial_scatter{root}, plan::direct_scatter{root}}, block_sizes<T>);
    const auto own_block = [](int rank, std::span<T> whole, std::size_t vector, std::size_t block) {
      const std::size_t begin = vector > 0 ? static_cast<std::size_t>(rank) * block : 0;
      return std::pair(whole.first(vector), whole.subspan(begin, block));
    };
    check_cases<T>(ranks, cases, moves_only{}, own_block,
                   [&](thread_rank& me, const call_case&, std::span<const T> in, std::span<T> out,
                       const auto& options) { hocket::scatter(me.comm(), in, out, hocket::root{root}, options); });
  }
}

template <class Check>
void for_rank_counts(Check check) {
  for (const int ranks : rank_counts) check(ranks);
}

/// For further types, whose bytes a plan moves as it does those of the first.
template <class Check>
void for_some_rank_counts(Check check) {
  for (const int ranks : {1, 3, 8}) check(ranks);
}

}  // namespace

TEST_CASE("all_gather copies every rank's block to every rank") {
  for_rank_counts(check_all_gather<std::int32_t>);
  for_some_rank_counts(check_all_gather<std::uint8_t>);
  for_some_rank_counts(check_all_gather<hocket::half>);
  for_some_rank_counts(check_all_gather<affine_map>);
  for_some_rank_counts(check_all_gather<hocket::exact_sum<float>>);
}

TEST_CASE("all_to_all exchanges blocks between all pairs of ranks") {
  for_rank_counts(check_all_to_all<std::int32_t>);
  for_some_rank_counts(check_all_to_all<std::uint8_t>);
  for_some_rank_counts(check_all_to_all<hocket::bfloat16>);
  for_some_rank_counts(check_all_to_all<affine_map>);
}

TEST_CASE("broadcast copies the root's vector to every rank, for each root") {
  for_rank_counts(check_broadcast<float>);
  for_some_rank_counts(check_broadcast<std::uint8_t>);
  for_some_rank_counts(check_broadcast<affine_map>);
}

TEST_CASE("gather copies every rank's block to the root, for each root") {
  for_rank_counts(check_gather<std::int32_t>);
  for_some_rank_counts(check_gather<std::uint8_t>);
  for_some_rank_counts(check_gather<affine_map>);
}

TEST_CASE("scatter copies a block of the root to every rank, for each root") {
  for_rank_counts(check_scatter<std::int32_t>);
  for_some_rank_counts(check_scatter<hocket::half>);
  for_some_rank_counts(check_scatter<affine_map>);
}

TEST_CASE("no rank leaves a barrier before every rank has arrived") {
  for (const int ranks : rank_counts) {
    constexpr int rounds = 200;
    std::vector<std::atomic<int>> arrived(rounds);
    on_ranks(ranks, [&](thread_rank& me) {
      for (std::size_t round = 0; round < rounds; ++round) {
        if (round % 50 == static_cast<std::size_t>(me.rank()))
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        arrived[round].fetch_add(1, std::memory_order_relaxed);
        hocket::barrier(me.comm());
        me.check(arrived[round].load(std::memory_order_relaxed) == ranks, "left before all ranks had arrived");
      }
    });
  }
}
