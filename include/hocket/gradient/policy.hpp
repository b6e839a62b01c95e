// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The parts of a model that each rank stores in data-parallel training, and when gradients are reduced. Both are
/// types, because not every pair is valid: a rank that stores only a part of the gradient can't delay the reduction
/// until the last microbatch. The compiler reports this, before a rank runs out of memory.
///
///     stored \ reduced         | last_microbatch | every_microbatch | scatter_every_reduce_last
///     zero<0>  everything      | yes             | yes              | no: nothing is scattered
///     zero<1>  part of states  | yes             | no: use zero<2>  | no: use zero<2>
///     zero<2>  and of gradient | no: use zero<1> | yes              | yes, with replicas
///     zero<3>  and parameters  | no: use zero<1> | yes              | yes, with replicas
///
/// Source: the stages of ZeRO (Rajbhandari et al., 2020).
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <type_traits>

HOCKET_BEGIN_NAMESPACE

// ── What a rank stores ──────────────────────────────────────────────────────────────────────────────────────────────

/// ZeRO stage `Stage`: 0, nothing is sharded; 1, optimizer states; 2, also gradients; 3, also parameters.
template <int Stage>
struct zero_t {
  static_assert(Stage >= 0 && Stage <= 3,
                "zero<s>: the sharding stages are 0 (nothing is sharded), 1 (optimizer states), 2 (and "
                "gradients) and 3 (and parameters)");
  static constexpr int stage = Stage;                    ///< the stage
  static constexpr bool shards_states = Stage >= 1;      ///< whether optimizer states are sharded
  static constexpr bool shards_gradients = Stage >= 2;   ///< whether gradients are sharded
  static constexpr bool shards_parameters = Stage >= 3;  ///< whether parameters are sharded
};
template <int Stage>
inline constexpr zero_t<Stage> zero{};

/// True for the types of `zero<s>`.
template <class T>
struct is_sharding : std::false_type {};
template <int Stage>
struct is_sharding<zero_t<Stage>> : std::true_type {};

/// What a rank stores: `zero<0>` to `zero<3>`.
template <class T>
concept sharding_stage = is_sharding<T>::value;

// ── When gradients are reduced ─────────────────────────────────────────────────────────────────────────────────────

/// Microbatches are summed on each rank, and the sum is reduced over the ranks once: least communication.
struct last_microbatch_t {};
inline constexpr last_microbatch_t last_microbatch{};

/// Each microbatch's gradient is reduced over all ranks as soon as it is ready: least memory.
struct every_microbatch_t {};
inline constexpr every_microbatch_t every_microbatch{};

/// Each microbatch's gradient is reduce-scattered among the ranks that share one copy of the model, and summed over
/// copies once. For copies that are sharded inside a host and replicated across hosts.
struct scatter_every_reduce_last_t {};
inline constexpr scatter_every_reduce_last_t scatter_every_reduce_last{};

/// The types that state when gradients are reduced.
template <class T>
concept reduction_time = std::is_same_v<T, last_microbatch_t> || std::is_same_v<T, every_microbatch_t> ||
                         std::is_same_v<T, scatter_every_reduce_last_t>;

namespace detail {

/// The reason why a pair is not in the table.
enum class policy_fault { none, no_time, no_stage, whole_of_parts, part_of_the_whole, scattered_whole, no_replicas };

template <class When, class Sharding>
constexpr policy_fault fault_of_policy(bool with_replicas) noexcept {
  if constexpr (!reduction_time<When>) {
    return policy_fault::no_time;
  } else if constexpr (!sharding_stage<Sharding>) {
    return policy_fault::no_stage;
  } else {
    constexpr int stage = Sharding::stage;
    constexpr bool scatters = std::is_same_v<When, scatter_every_reduce_last_t>;
    if (std::is_same_v<When, last_microbatch_t>) return stage >= 2 ? policy_fault::whole_of_parts : policy_fault::none;
    if (stage == 1) return policy_fault::part_of_the_whole;
    if (scatters && stage == 0) return policy_fault::scattered_whole;
    return scatters && !with_replicas ? policy_fault::no_replicas : policy_fault::none;
  }
}

}  // namespace detail

/// Whether gradients of the stage `Sharding` can be reduced at the times `When`, over a group with replicas.
template <class When, class Sharding>
concept accumulates = detail::fault_of_policy<When, Sharding>(true) == detail::policy_fault::none;

HOCKET_END_NAMESPACE
