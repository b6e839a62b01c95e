// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The extents of whole tensors, as part of the signature on which the ranks of a call must agree: parts of tensors
/// with different extents can have equal sizes, and would be combined without an error.
#pragma once

#include <hocket/core/agreement.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns a hash of the extents of tensors, in order. Never 0.
template <class... Sizes>
constexpr std::uint32_t hash_of_extents(const Sizes&... of_tensors) noexcept {
  std::uint64_t hash = sizeof...(Sizes);
  const auto add = [&](const auto& sizes) {
    for (const std::size_t each : sizes) {
      hash = (hash ^ each) * 0x9e3779b97f4a7c15U;
      hash ^= hash >> 32;
    }
  };
  (add(of_tensors), ...);
  return static_cast<std::uint32_t>(hash) | 1U;
}

/// Returns `options` with a hash of the extents of `tensors`, unless types, equal on all ranks, contain all extents.
template <class Options, class... Tensors>
constexpr decltype(auto) with_extents(const Options& options, const Tensors&... tensors) {
  if constexpr (HOCKET_MISMATCH_DETECTION && ((Tensors::extents_type::dynamic_rank > 0) || ...)) {
    // A hint, because no collective has to support it.
    return options.and_also(optional_property<agreement_property>{{hash_of_extents(tensors.sizes()...)}});
  } else {
    return (options);
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
