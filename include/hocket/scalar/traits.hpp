// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Traits of element types for generic code: the type in which to accumulate, the name in messages and tables, and
/// whether it is a floating-point type (`std::is_floating_point` is true only for the built-in ones).
///
/// User-defined types specialise `scalar_traits`; members that are left out keep their defaults:
///
///     template <>
///     struct hocket::scalar_traits<fixed16> : hocket::scalar_defaults<fixed16> {
///       using accumulator = fixed64;
///       static constexpr const char* name = "fixed16";
///     };
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/scalar/bfloat16.hpp>
#include <hocket/scalar/float8.hpp>
#include <hocket/scalar/half.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Names integers by size and sign, not by how they are spelled: long and long long are the same in a message.
template <class T>
constexpr const char* default_scalar_name() noexcept {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_same_v<T, long double>) return "long_double";
  if constexpr (std::is_same_v<T, bool>) return "bool";
  if constexpr (std::is_same_v<T, std::byte>) return "byte";
  if constexpr (std::is_integral_v<T>) {
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? "int8" : "uint8";
    if constexpr (sizeof(T) == 2) return is_signed ? "int16" : "uint16";
    if constexpr (sizeof(T) == 4) return is_signed ? "int32" : "uint32";
    if constexpr (sizeof(T) == 8) return is_signed ? "int64" : "uint64";
  }
  return "custom";
}

}  // namespace detail

/// Default traits of element types. Specialisations of `scalar_traits` derive from it.
template <class T>
struct scalar_defaults {
  /// The type in which many values are combined before they are rounded to T.
  using accumulator = T;
  /// A short word for messages and tables; not unique for types that do not set it.
  static constexpr const char* name = detail::default_scalar_name<T>();
  /// True if T has rounding, NaNs and signed zeros, which affect exactness.
  static constexpr bool floating = std::is_floating_point_v<T>;
};

/// The customisation point; read it through `accumulator_t`, `scalar_name` and `is_floating`.
template <class T>
struct scalar_traits : scalar_defaults<T> {};

namespace detail {

template <class T>
struct small_float_traits : scalar_defaults<T> {
  using accumulator = float;
  static constexpr bool floating = true;
};

}  // namespace detail

template <>
struct scalar_traits<half> : detail::small_float_traits<half> {
  static constexpr const char* name = "half";
};

template <>
struct scalar_traits<bfloat16> : detail::small_float_traits<bfloat16> {
  static constexpr const char* name = "bfloat16";
};

template <>
struct scalar_traits<float8_e4m3> : detail::small_float_traits<float8_e4m3> {
  static constexpr const char* name = "float8_e4m3";
};

template <>
struct scalar_traits<float8_e5m2> : detail::small_float_traits<float8_e5m2> {
  static constexpr const char* name = "float8_e5m2";
};

/// float for the small floating-point types, the type itself for all others unless their traits differ.
template <class T>
using accumulator_t = typename scalar_traits<std::remove_cv_t<T>>::accumulator;

/// "float", "bfloat16", "int8", "uint64" ...; "custom" for types whose traits do not name them.
template <class T>
constexpr const char* scalar_name() noexcept {
  return scalar_traits<std::remove_cv_t<T>>::name;
}

/// True for the built-in floating-point types, the small ones, and every type whose traits set `floating`.
template <class T>
inline constexpr bool is_floating = scalar_traits<std::remove_cv_t<T>>::floating;

HOCKET_END_NAMESPACE
