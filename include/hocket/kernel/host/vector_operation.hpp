// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which operations of the library on which types are combined by the loops of vector_kernel.hpp.
///
/// Those loops exist once for each operation and type of lanes, not for each pair of operation and element: sums of
/// `long` and `unsigned long long`, an average of floats and a sum of floats share one. Operations of users and types
/// of users are not among them; each of their loops would exist three times.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/scalar/bfloat16.hpp>
#include <hocket/scalar/half.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace kernel::detail {

enum class vector_function { none, plus, multiplies, minimum, maximum, bit_and, bit_or, bit_xor };

/// The order of combinations, and when partial results are rounded to the type in which they are sent.
enum class vector_order {
  from_left,          ///< rounded once
  from_left_rounded,  ///< rounded after each combination
  in_tree             ///< in the fixed tree, rounded after each combination
};

/// The function of `Op` on two values of T; none if it is an operation of a user, or converts its arguments.
template <class Op, class T>
inline constexpr vector_function vector_function_of = vector_function::none;

template <class T>
inline constexpr vector_function vector_function_of<minimum, T> = vector_function::minimum;
template <class T>
inline constexpr vector_function vector_function_of<maximum, T> = vector_function::maximum;
template <class T>
inline constexpr vector_function vector_function_of<average, T> = vector_function::plus;
template <class Factor, class T>
inline constexpr vector_function vector_function_of<scaled_sum<Factor>, T> = vector_function::plus;

template <vector_function Function, class U, class T>
inline constexpr vector_function unless_converted =
    std::is_void_v<U> || std::is_same_v<U, T> ? Function : vector_function::none;

template <class U, class T>
inline constexpr vector_function vector_function_of<std::plus<U>, T> = unless_converted<vector_function::plus, U, T>;
template <class U, class T>
inline constexpr vector_function vector_function_of<std::multiplies<U>, T> =
    unless_converted<vector_function::multiplies, U, T>;
template <class U, class T>
inline constexpr vector_function vector_function_of<std::bit_and<U>, T> =
    unless_converted<vector_function::bit_and, U, T>;
template <class U, class T>
inline constexpr vector_function vector_function_of<std::bit_or<U>, T> =
    unless_converted<vector_function::bit_or, U, T>;
template <class U, class T>
inline constexpr vector_function vector_function_of<std::bit_xor<U>, T> =
    unless_converted<vector_function::bit_xor, U, T>;

template <class Op, class Wire, class T>
inline constexpr vector_function vector_function_of<hocket::detail::wired<Op, Wire>, T> = vector_function_of<Op, T>;
template <class Op, class T>
inline constexpr vector_function vector_function_of<hocket::detail::canonical<Op>, T> = vector_function_of<Op, T>;
template <class Op, class T>
inline constexpr vector_function vector_function_of<hocket::detail::in_fixed_tree<Op>, T> = vector_function_of<Op, T>;

/// True if results do not depend on the order, nor on when they are rounded.
template <vector_function Function, class Lane>
inline constexpr bool is_exact_on =
    std::is_integral_v<Lane> || Function == vector_function::minimum || Function == vector_function::maximum;

template <std::size_t Bytes, bool IsSigned>
struct integer_lane;
template <>
struct integer_lane<1, false> : std::type_identity<std::uint8_t> {};
template <>
struct integer_lane<2, false> : std::type_identity<std::uint16_t> {};
template <>
struct integer_lane<4, false> : std::type_identity<std::uint32_t> {};
template <>
struct integer_lane<8, false> : std::type_identity<std::uint64_t> {};
template <>
struct integer_lane<1, true> : std::type_identity<std::int8_t> {};
template <>
struct integer_lane<2, true> : std::type_identity<std::int16_t> {};
template <>
struct integer_lane<4, true> : std::type_identity<std::int32_t> {};
template <>
struct integer_lane<8, true> : std::type_identity<std::int64_t> {};

/// The type of lanes for partial results of type `Partial` that are combined as `Accumulator`; void if there is none.
/// Sums and products wrap, so they need no signed lanes; operations on bits have lanes of 8 bytes for all types.
template <vector_function Function, class Partial, class Accumulator>
consteval auto vector_lane_of() {
  constexpr bool orders = Function == vector_function::minimum || Function == vector_function::maximum;
  constexpr bool computes = orders || Function == vector_function::plus || Function == vector_function::multiplies;
  if constexpr (Function == vector_function::none) {
    return std::type_identity<void>();
  } else if constexpr (std::is_same_v<Partial, bfloat16> || std::is_same_v<Partial, half>) {
    constexpr bool is_known = std::is_same_v<Accumulator, float> || std::is_same_v<Accumulator, Partial>;
    return std::type_identity<std::conditional_t<computes && is_known, Partial, void>>();
  } else if constexpr (!std::is_same_v<Partial, Accumulator> || std::is_same_v<Partial, bool>) {
    return std::type_identity<void>();
  } else if constexpr (std::is_same_v<Partial, float> || std::is_same_v<Partial, double>) {
    return std::type_identity<std::conditional_t<computes, Partial, void>>();
  } else if constexpr (std::is_integral_v<Partial> && sizeof(Partial) <= 8) {
    return integer_lane < computes ? sizeof(Partial) : 8, orders && std::is_signed_v < Partial >> ();
  } else if constexpr (hocket::detail::is_standard_complex<Partial>() && Function == vector_function::plus) {
    return std::type_identity<typename Partial::value_type>();
  } else {
    return std::type_identity<void>();
  }
}

/// How vectors of lanes combine partial results of `Op` on T.
template <class Op, class T>
struct vector_operation {
  using partial = typename reduction<Op, T>::partial;
  using accumulator = typename reduction<Op, T>::accumulator;

  static constexpr vector_function function = vector_function_of<Op, accumulator>;
  using lane = typename decltype(vector_lane_of<function, partial, accumulator>())::type;
  static constexpr bool exists = !std::is_void_v<lane>;

  static consteval vector_order order() {
    if (is_exact_on<function, lane>) return vector_order::from_left;
    if (hocket::detail::is_in_fixed_tree<Op>) return vector_order::in_tree;
    const bool rounds_each = !std::is_arithmetic_v<partial> && std::is_same_v<partial, accumulator>;
    return rounds_each && sizeof(partial) == 2 ? vector_order::from_left_rounded : vector_order::from_left;
  }
};

/// What `prepare` or `finish` do to each element.
enum class vector_conversion {
  other,
  decode,           ///< a small float becomes a float
  encode,           ///< a float becomes a small float
  encode_quotient,  ///< a float is divided by the number of ranks, and becomes a small float
  combine_twice     ///< an element is combined with itself
};

/// The conversion of contributions of T, or of results, if it exists with vectors. `Op` may be in the fixed tree.
template <class Op, class T>
inline constexpr auto preparing_conversion = vector_conversion::other;
template <class Op, class T>
inline constexpr auto finishing_conversion = vector_conversion::other;

template <class T>
inline constexpr bool is_half_or_bfloat16 = std::is_same_v<T, half> || std::is_same_v<T, bfloat16>;

template <class Op, class T>
inline constexpr auto preparing_conversion<hocket::detail::in_fixed_tree<Op>, T> = preparing_conversion<Op, T>;
template <class Op, class T>
inline constexpr auto finishing_conversion<hocket::detail::in_fixed_tree<Op>, T> = finishing_conversion<Op, T>;

template <class T>
  requires is_half_or_bfloat16<T>
inline constexpr auto preparing_conversion<average, T> = vector_conversion::decode;
template <class T>
  requires is_half_or_bfloat16<T>
inline constexpr auto finishing_conversion<average, T> = vector_conversion::encode_quotient;

template <class Op, class Wire>
  requires is_half_or_bfloat16<Wire>
inline constexpr auto preparing_conversion<hocket::detail::wired<Op, Wire>, float> = vector_conversion::encode;
template <class Op, class Wire>
  requires is_half_or_bfloat16<Wire>
inline constexpr auto finishing_conversion<hocket::detail::wired<Op, Wire>, float> = vector_conversion::decode;

template <class Op, class T>
  requires vector_operation<Op, T>::exists
inline constexpr auto preparing_conversion<hocket::detail::canonical<Op>, T> = vector_conversion::combine_twice;

}  // namespace kernel::detail
HOCKET_END_NAMESPACE
