// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// 32 bits that stand for everything that must be equal on all ranks of a call. Those of a call and all before it
/// travel with every flag.
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

/// The *running signature* stands for a call with `signature` and for all calls before it on the communicator, and is
/// what the flags and messages of the call show. Where nobody waits in the first calls that differ, such as the roots
/// of short broadcasts, the next call that exchanges anything shows it.
constexpr std::uint32_t running_signature(std::uint32_t history, std::uint32_t signature) noexcept {
  if constexpr (!HOCKET_MISMATCH_DETECTION) return 0;
  return mix(history, signature);
}

constexpr std::uint32_t hash_text(const char* text) noexcept {
  std::uint32_t hash = 2166136261U;
  for (; *text != '\0'; ++text) hash = (hash ^ static_cast<unsigned char>(*text)) * 16777619U;
  return hash;
}

/// Text that names the types, as the compiler writes them: see `type_text`.
template <class... Types>
constexpr const char* types_name() noexcept {
  return __PRETTY_FUNCTION__;
}

/// A number for a type, equal in all programs that the same compiler built.
template <class... Types>
constexpr std::uint32_t type_signature() noexcept {
  return hash_text(types_name<Types...>());
}

}  // namespace detail
HOCKET_END_NAMESPACE
