// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Functions that all collectives share: `run_call` runs a call until it is complete, `start_call` only starts it.
#pragma once

#include <hocket/collective/host/call_settings.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/request.hpp>
#include <hocket/engine/call_site.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class State>
std::chrono::nanoseconds timeout_of(const State& state, const call_settings& settings) noexcept {
  return settings.timeout.value_or(state.timeout());
}

template <class State>
call_site site_of(const State& state, const char* name, const call_settings& settings,
                  const std::source_location& site) {
  return {name, site, timeout_of(state, settings)};
}

/// Returns the part of a call's signature that depends on types, plan and root; a constant if these are constants.
constexpr std::uint32_t call_signature(std::uint32_t type_signature, const char* plan_name, int root) noexcept {
  if constexpr (!HOCKET_MISMATCH_DETECTION) return 0;
  return mix(type_signature, hash_text(plan_name) ^ static_cast<std::uint32_t>(root));
}

/// Returns a call's signature, which ranks compare to detect a `mismatch`; independent of the path that a rank takes.
constexpr std::uint32_t call_signature(std::uint32_t kind_of_call, std::size_t block_elements) noexcept {
  if constexpr (!HOCKET_MISMATCH_DETECTION) return 0;
  return mix(kind_of_call, block_elements);
}

/// Returns `signature` combined with `agreement` (see core/agreement.hpp), or unchanged if `agreement` is 0.
constexpr std::uint32_t with_agreement(std::uint32_t signature, std::uint32_t agreement) noexcept {
  return HOCKET_MISMATCH_DETECTION && agreement != 0 ? mix(signature, agreement) : signature;
}

/// Throws the failure in `ended`, if any.
inline void deliver(const outcome& ended) {
  if (ended.failed()) raise(ended.cause());
}

/// Runs a blocking call, and returns its result. `Call` is `host_call` or a call spec for device memory. Not inlined,
/// so that its callers, which handle small vectors directly, stay small.
template <class Call, class Domain>
HOCKET_NO_INLINE outcome run_call(const communicator<Domain>& comm, const Call& what, const call_settings& settings,
                                  const std::source_location& site);

/// Starts an `_async` call. The operation gets its sequence number now, and advances in later calls and waits.
template <class Call, class Domain>
request start_call(const communicator<Domain>& comm, const Call& what, const call_settings& settings,
                   const std::source_location& site);

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/collective/host/impl/call.ipp>
#endif
