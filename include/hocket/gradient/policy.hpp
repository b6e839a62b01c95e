// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What each rank keeps of a model that several ranks train together, and when gradients go over the ranks. Both are
/// types, as not every pair of them makes sense: whoever keeps a part of the gradient alone can't wait with the
/// reduction until the last microbatch, and that is found when compiling, not by a rank that runs out of memory.
///
///     what is kept \ reduced   | last_microbatch | every_microbatch | scatter_every_reduce_last
///     zero<0>  everything      | yes             | yes              | no: nothing is scattered
///     zero<1>  part of states  | yes             | no: say zero<2>  | no: say zero<2>
///     zero<2>  and of gradient | no: say zero<1> | yes              | yes, with replicas
///     zero<3>  and parameters  | no: say zero<1> | yes              | yes, with replicas
///
/// Source: the stages of ZeRO (Rajbhandari et al., 2020).
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <type_traits>

HOCKET_BEGIN_NAMESPACE

// ── What a rank keeps ──────────────────────────────────────────────────────────────────────────────────────────────

/// ZeRO stage `Stage`: 0, all of everything; 1, optimizer states in parts; 2, gradients too; 3, parameters too.
template <int Stage>
struct zero_t {
  static_assert(Stage >= 0 && Stage <= 3,
                "zero<s>: the stages are 0 (nothing is sharded), 1 (optimizer states), 2 (and "
                "gradients) and 3 (and parameters)");
  static constexpr int stage = Stage;
  static constexpr bool shards_states = Stage >= 1;
  static constexpr bool shards_gradients = Stage >= 2;
  static constexpr bool shards_parameters = Stage >= 3;
};
template <int Stage>
inline constexpr zero_t<Stage> zero{};

template <class T>
struct is_sharding : std::false_type {};
template <int Stage>
struct is_sharding<zero_t<Stage>> : std::true_type {};

/// What a rank keeps: `zero<0>` to `zero<3>`.
template <class T>
concept sharding_stage = is_sharding<T>::value;

// ── When gradients are reduced ─────────────────────────────────────────────────────────────────────────────────────

/// Microbatches are added up on each rank, and the sum goes over the ranks once: least communication.
struct last_microbatch_t {};
inline constexpr last_microbatch_t last_microbatch{};

/// Each microbatch's gradient goes over all ranks as soon as it is there: least memory.
struct every_microbatch_t {};
inline constexpr every_microbatch_t every_microbatch{};

/// Each microbatch's gradient is scattered among the ranks that share one copy of the model; copies add up once. For
/// copies that are sharded inside a host and replicated across hosts.
struct scatter_every_reduce_last_t {};
inline constexpr scatter_every_reduce_last_t scatter_every_reduce_last{};

template <class T>
concept reduction_time = std::is_same_v<T, last_microbatch_t> || std::is_same_v<T, every_microbatch_t> ||
                         std::is_same_v<T, scatter_every_reduce_last_t>;

namespace detail {

/// Why a pair is not in the table.
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

/// Says it in words.
template <class When, class Sharding, bool WithReplicas>
struct checked_accumulation {
  static constexpr policy_fault fault = fault_of_policy<When, Sharding>(WithReplicas);
  static_assert(fault != policy_fault::no_time,
                "gradients(...): when to reduce is last_microbatch, every_microbatch or "
                "scatter_every_reduce_last");
  static_assert(fault != policy_fault::no_stage,
                "gradients(...): what is kept is zero<0>, zero<1>, zero<2> or zero<3>");
  static_assert(
      fault != policy_fault::whole_of_parts,
      "gradients(...): zero<2> and zero<3> keep a part of the gradient, and with last_microbatch the whole is "
      "kept until the last one: say every_microbatch, or zero<1>");
  static_assert(
      fault != policy_fault::part_of_the_whole,
      "gradients(...): zero<1> keeps the whole gradient, and with a reduction at every microbatch only a part "
      "is left: say zero<2>, which needs less memory, or last_microbatch");
  static_assert(fault != policy_fault::scattered_whole,
                "gradients(...): scatter_every_reduce_last leaves each rank a part of the gradient, and zero<0> keeps "
                "the whole: say every_microbatch, or zero<2>");
  static_assert(fault != policy_fault::no_replicas,
                "gradients(...): scatter_every_reduce_last reduces over replicas at the end, and there are none here: "
                "pass hybrid(shards, replicas), or say every_microbatch");
  static constexpr bool value = fault == policy_fault::none;
};

}  // namespace detail

namespace detail {

/// Says in words what is no stage.
template <class Sharding>
struct checked_stage {
  static constexpr bool value = sharding_stage<Sharding>;
  static_assert(value, "parameters(...): what is kept is zero<0>, zero<1>, zero<2> or zero<3>");
};

/// Says in words what is no options.
template <class Options>
struct checked_options {
  static constexpr bool value = call_options<Options>;
  static_assert(value,
                "what follows zero<s> in gradients(...) and parameters(...) are options, as in with(timeout(5s))");
};

}  // namespace detail

/// Whether gradients that are kept as `Sharding` says can be reduced when `When` says, over a group with replicas.
template <class When, class Sharding>
concept accumulates = detail::fault_of_policy<When, Sharding>(true) == detail::policy_fault::none;

HOCKET_END_NAMESPACE
