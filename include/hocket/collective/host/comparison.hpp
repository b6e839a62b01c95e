// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Assertion level 3: the ranks of a call compare complete descriptions of their calls before any data moves.
///
/// At all levels, ranks compare the signatures in flags and messages. But these have 32 or 13 bits, and a rank that
/// waits for no peer completes before it can see a difference. Here every rank compares with all others. The comparison
/// is an ordinary all_gather with its own sequence number, just before the call's. The call's deadline and abort apply
/// to it, and an `_async` call does not wait for it.
#pragma once

#include <hocket/collective/host/call_settings.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/mixed_bits.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/select.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

constexpr std::uint64_t describe_further(std::uint64_t description, std::uint64_t value) noexcept {
  return mixed_bits((description ^ value) + golden_ratio);
}

constexpr std::uint64_t describe_further(std::uint64_t description, const char* text) noexcept {
  for (; *text != '\0'; ++text) description = (description ^ static_cast<unsigned char>(*text)) * 0x100000001b3U;
  return describe_further(description, std::uint64_t{0});
}

/// Returns a 64-bit hash of everything that must be equal on all ranks in the call that begins with operation `first`.
inline std::uint64_t description_of(const planned_call& call, std::uint32_t first) noexcept {
  const plan::collective collective = call.plan.collective();
  std::uint64_t result = 0xcbf29ce484222325U;
  result = describe_further(result, first);
  result = describe_further(result, static_cast<std::uint64_t>(collective.kind));
  result = describe_further(result, static_cast<std::uint64_t>(collective.root));
  result = describe_further(result, call.plan.name());
  result = describe_further(result, call.types);
  result = describe_further(result, call.layout.block_size());
  result = describe_further(result, call.layout.chunks_per_block());
  result = describe_further(result, call.signature);  // includes counts per rank
  return describe_further(result, call.checksummed ? 1U : 0U);
}

/// Runs the comparison and then, if all ranks made the same call, `OperationState`.
template <class State, class OperationState>
class compared_operation_state final : public operation {
 public:
  template <class Spec>
  compared_operation_state(State& state, const Spec& spec, const planned_call& call, step_observer observer)
      : own_(description_of(call, state.last_sequence() + 1)), all_(static_cast<std::size_t>(state.size())),
        comparison_(state, bind(state), std::numeric_limits<std::size_t>::max()),
        operation_state_(state, spec, call, observer) {}

  machine_status advance() override {
    if (!equal_) {
      const machine_status status = comparison_.advance();
      if (status != machine_status::done) return status;
      if (differs()) return machine_status::failed;
      equal_ = true;
    }
    return operation_state_.advance();
  }
  const failure& reported() const override {
    if (equal_) return operation_state_.reported();
    return cause_ ? cause_ : comparison_.cause();
  }
  bool has_full_cause() const override { return equal_ && operation_state_.has_full_cause(); }
  void locate(error_context& context) override {
    equal_ ? operation_state_.locate(context) : comparison_.locate(context);
  }

 private:
  /// Does not use `plan_call`, because the communicator must remember the caller's call as the last one.
  binding bind(const State& state) {
    const selection::query asked{.what = {plan::collective_kind::all_gather, 0},
                                 .bytes = sizeof own_,
                                 .ranks = state.size(),
                                 .peer_pointers = state.has_windows(),
                                 .staging_bytes = state.staging_limit(),
                                 .costs = state.domain()->costs()};
    const plan::any_algorithm chosen = selection::table(asked).best().make(0);
    return {chosen,
            {1, static_cast<std::uint32_t>(state.size()), chosen.shape(state.size()).chunks_per_block},
            &kernel::copy_kernel_of<std::uint64_t>,
            nullptr,
            reinterpret_cast<const std::byte*>(&own_),
            reinterpret_cast<std::byte*>(all_.data()),
            signature,
            {}};
  }

  /// Returns whether a rank made another call. The progress loop adds the details to the error: see `examined`.
  bool differs() {
    for (std::size_t peer = 0; peer < all_.size(); ++peer) {
      if (all_[peer] == own_) continue;
      cause_ = transport::call_mismatch(static_cast<int>(peer));
      cause_.context.sequence = comparison_.sequence();
      return true;
    }
    return false;
  }

  /// Equal on all ranks, whatever they call, and different from the signature of any call.
  static constexpr std::uint32_t signature = 0x636d7072;

  const std::uint64_t own_;
  std::vector<std::uint64_t> all_;
  plan_run<State> comparison_;
  OperationState operation_state_;
  failure cause_;
  bool equal_ = false;
};

/// The operation state of a call: `OperationState`, or at assertion level 3 the comparison and then `OperationState`.
template <class State, class OperationState>
using asserted_operation_state =
    typename std::conditional_t<compares_first, std::type_identity<compared_operation_state<State, OperationState>>,
                                std::type_identity<OperationState>>::type;

}  // namespace detail
HOCKET_END_NAMESPACE
