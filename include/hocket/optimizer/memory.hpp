// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory that a rank needs to train a model, in bytes, computed before anything is allocated. The formulas of
/// ZeRO, exact also for pieces that differ by a block, and constexpr if the sizes are.
///
/// With n elements, N ranks, and P, G, F bytes per parameter, gradient and state (K states, one more if P < F):
///
///     zero<0>   (P + G + K F) n
///     zero<1>   (P + G) n + K F n/N
///     zero<2>   P n + (G + K F) n/N
///     zero<3>   (P + G + K F) n/N
///
/// and, with zero<2> and zero<3>, buckets that are gathered or in flight: `consecutive_bucket_bytes`. A rank sends 2 n
/// (N-1)/N elements per step of one microbatch up to zero<2>, and 3 n (N-1)/N with zero<3>, which gathers parameters
/// for both passes. zero<2> and zero<3> reduce once more for each further microbatch.
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

/// Bytes that one rank stores from step to step.
struct training_bytes {
  std::size_t parameters = 0;  ///< the parameters
  std::size_t gradients = 0;   ///< the sums of gradients
  std::size_t states = 0;      ///< includes the wider copy of the parameters, if present

  constexpr std::size_t total() const noexcept { return parameters + gradients + states; }  ///< all bytes
  friend constexpr bool operator==(const training_bytes&, const training_bytes&) = default;
};

/// Returns the stored bytes for buckets of these sizes, for example those of `parameter_layout::bucket_elements`.
/// @tparam P, T, F the types of parameters, of gradients, and of the optimizer's states
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

/// Returns the maximum bytes of `count` consecutive buckets of `T`, cyclically. With zero<2> and zero<3>, at most this
/// is needed in addition to the `gradients` above while the backward pass computes one bucket after the other, with a
/// `count` of `bucket_limits::in_flight` + 1; and in addition to the `parameters` of zero<3>, if `count` buckets are
/// gathered at the same time.
template <class T>
constexpr std::size_t consecutive_bucket_bytes(std::span<const std::size_t> bucket_elements,
                                               std::size_t count) noexcept {
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
