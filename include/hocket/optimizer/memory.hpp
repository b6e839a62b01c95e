// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a rank needs to train a model, in bytes, before anything is allocated: the formulas of ZeRO, exact for pieces
/// that differ by a block, and known when compiling where the sizes are.
///
/// With n elements, N ranks, and P, G, F bytes per parameter, gradient and state (K states, and one more where P < F):
///
///     zero<0>   (P + G + K F) n
///     zero<1>   (P + G) n + K F n/N
///     zero<2>   P n + (G + K F) n/N
///     zero<3>   (P + G + K F) n/N
///
/// and, with zero<2> and zero<3>, buckets that are gathered or on their way: `passing_bytes`. Traffic per step of one
/// microbatch and rank, in elements that leave it: 2 n (N-1)/N up to zero<2>, 3 n (N-1)/N with zero<3>, which gathers
/// for both passes; these two reduce once more for each further microbatch.
///
/// Source: ZeRO, Rajbhandari et al., 2020.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>

#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// Bytes that stay from step to step on one rank.
struct training_bytes {
  std::size_t parameters = 0;
  std::size_t gradients = 0;
  std::size_t states = 0;  ///< with the wider copy of the parameters, if there is one

  constexpr std::size_t total() const noexcept { return parameters + gradients + states; }
  friend constexpr bool operator==(const training_bytes&, const training_bytes&) = default;
};

/// For buckets of so many elements, as `parameter_layout::bucket_elements` gives them, or any others.
/// @tparam P, T, F the types of parameters, of gradients, and of what the optimizer keeps
template <class P, class T, class F, class Rule, sharding_stage Sharding>
constexpr training_bytes bytes_of_training(std::span<const std::size_t> bucket_elements, int rank, int ranks,
                                           Sharding = {}) noexcept {
  std::size_t all = 0, own = 0;
  for (const std::size_t elements : bucket_elements) {
    all += elements;
    own += piece_of({0, elements}, rank, ranks).size;
  }
  constexpr std::size_t copies = Rule::states + (std::is_same_v<P, F> ? 0 : 1);
  return {(Sharding::shards_parameters ? own : all) * sizeof(P), (Sharding::shards_gradients ? own : all) * sizeof(T),
          (Sharding::shards_states ? own : all) * copies * sizeof(F)};
}

/// The most that `count` buckets of `T` need which follow each other, the first after the last. With zero<2> and
/// zero<3> this is what comes at most to the `gradients` above, while the backward pass forms one bucket after the
/// other, `count` being `bucket_limits::in_flight` + 1; and to the `parameters` of zero<3>, if so many are gathered at
/// once.
template <class T>
constexpr std::size_t passing_bytes(std::span<const std::size_t> bucket_elements, std::size_t count) noexcept {
  const std::size_t buckets = bucket_elements.size();
  std::size_t most = 0;
  for (std::size_t first = 0; first < buckets; ++first) {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < count && i < buckets; ++i) sum += bucket_elements[(first + i) % buckets];
    if (sum > most) most = sum;
  }
  return most * sizeof(T);
}

HOCKET_END_NAMESPACE
