// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The extents of whole tensors, as part of what a call's ranks must agree on: parts of tensors of different extents
/// can be of equal sizes, and would be combined without anybody noticing.
#pragma once

#include <hocket/core/agreement.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Stands for the extents of tensors, in order. Never 0.
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

/// `options`, and the extents of `tensors` where types do not tell them. What they tell is equal on all ranks.
template <class Options, class... Tensors>
constexpr decltype(auto) with_extents(const Options& options, const Tensors&... tensors) {
  if constexpr (HOCKET_MISMATCH_DETECTION && ((Tensors::extents_type::dynamic_rank > 0) || ...)) {
    // As a hint: no collective has to know of it.
    return options.and_also(hinted<agreement_property>{{hash_of_extents(tensors.sizes()...)}});
  } else {
    return (options);
  }
}

}  // namespace detail
HOCKET_END_NAMESPACE
