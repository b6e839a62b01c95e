// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A 32-bit hash of everything that must be equal on all ranks of a call. Every flag carries the hash of its call and
/// of all calls before it.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Folds one more value into a signature.
constexpr std::uint32_t mix(std::uint32_t signature, std::uint64_t value) noexcept {
  const std::uint64_t product = (signature ^ value) * 0x9e3779b97f4a7c15U;
  return static_cast<std::uint32_t>(product >> 32) ^ static_cast<std::uint32_t>(product);
}

/// The *running signature* covers a call with `signature` and all calls before it on the communicator; the flags and
/// messages of the call carry it. If no rank waits in the first calls that differ, such as roots of short broadcasts,
/// the next call that exchanges anything detects the difference.
constexpr std::uint32_t running_signature(std::uint32_t history, std::uint32_t signature) noexcept {
  if constexpr (!HOCKET_MISMATCH_DETECTION) return 0;
  return mix(history, signature);
}

constexpr std::uint32_t hash_text(const char* text) noexcept {
  std::uint32_t hash = 2166136261U;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619U;
  return hash;
}

/// Returns text that names the types as the compiler writes them: see `type_text`.
template <class... Types>
constexpr const char* types_name() noexcept {
  return __PRETTY_FUNCTION__;
}

/// Returns a hash of a type's name, equal in all programs built by the same compiler.
template <class... Types>
constexpr std::uint32_t type_signature() noexcept {
  return hash_text(types_name<Types...>());
}

}  // namespace detail
HOCKET_END_NAMESPACE
