// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Defines reduction operations, and the properties of an operation that algorithms may use.
///
/// An operation is {prepare, combine, finish}: each contribution is prepared once, prepared values are combined in any
/// grouping, and the combination is finished once, on every rank alike. A plain function object `T op(T, T)` is its own
/// `combine`, with nothing to prepare or finish. An average combines sums and finishes by a division; an exact sum
/// prepares each value into a wide accumulator and finishes by rounding it.
///
/// Operations must be associative. They are assumed *not* to be commutative unless their traits state it: by a member,
/// or by a specialisation for operations that you can't change:
///
/// @code
/// struct compose {                                   // 2x2 matrices: associative, not commutative
///   matrix operator()(matrix a, matrix b) const;
/// };
/// struct merge {
///   static constexpr bool commutative = true;        // now ring algorithms may use it
///   sketch operator()(sketch a, sketch b) const;
/// };
/// struct average {                                   // with all three parts
///   static constexpr bool commutative = true;
///   static float prepare(float x);
///   static float combine(float a, float b);
///   static float finish(float sum, int ranks);       // `ranks`: how many contributions were combined
/// };
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/operation/apply.hpp>
#include <hocket/scalar/traits.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// The built-in arithmetic types, and those for which `is_floating` is true.
template <class T>
inline constexpr bool is_number = std::is_arithmetic_v<T> || is_floating<T>;

/// True if T is `std::complex<float>` or `std::complex<double>`, without including their header, which includes
/// streams. Checks the name: no other type's name begins with it.
template <class T>
consteval bool is_standard_complex() {
  std::string_view rest = __PRETTY_FUNCTION__;
  if (rest.find("T = std::") == rest.npos) return false;
  rest.remove_prefix(rest.find("T = std::") + 9);
  if (rest.starts_with("__1::")) rest.remove_prefix(5);  // of libc++
  if (!rest.starts_with("complex<")) return false;
  rest.remove_prefix(8);
  return rest.starts_with("float>") || rest.starts_with("double>");
}

}  // namespace detail

/// True if `Op` gives the same result with its operands swapped, for every pair of `T`.
template <class Op, class T>
struct is_commutative : std::false_type {};

template <class Op, class T>
  requires requires {
    { Op::commutative } -> std::convertible_to<bool>;
  }
struct is_commutative<Op, T> : std::bool_constant<Op::commutative> {};

template <class T, class U>
struct is_commutative<std::plus<U>, T> : std::bool_constant<detail::is_number<T> || detail::is_standard_complex<T>()> {
};
template <class T, class U>
struct is_commutative<std::multiplies<U>, T> : std::bool_constant<detail::is_number<T>> {};
template <class T, class U>
struct is_commutative<std::bit_and<U>, T> : std::is_integral<T> {};
template <class T, class U>
struct is_commutative<std::bit_or<U>, T> : std::is_integral<T> {};
template <class T, class U>
struct is_commutative<std::bit_xor<U>, T> : std::is_integral<T> {};
template <class T, class U>
struct is_commutative<std::logical_and<U>, T> : std::is_arithmetic<T> {};
template <class T, class U>
struct is_commutative<std::logical_or<U>, T> : std::is_arithmetic<T> {};

/// The value of `is_commutative`.
template <class Op, class T>
inline constexpr bool is_commutative_v = is_commutative<Op, T>::value;

/// True if grouping and order of the combinations never change a bit: integers, minimum, exact sums. Floating-point
/// sums are associative only approximately.
template <class Op, class T>
struct is_exact : std::false_type {};

template <class Op, class T>
  requires requires {
    { Op::exact } -> std::convertible_to<bool>;
  }
struct is_exact<Op, T> : std::bool_constant<Op::exact> {};

namespace detail {

/// True if a function object of the standard library, made for `U`, takes integers of `T` unchanged.
template <class U, class T>
using keeps_integers = std::bool_constant<std::is_integral_v<T> && (std::is_void_v<U> || std::is_same_v<U, T>)>;

}  // namespace detail

template <class T, class U>
struct is_exact<std::plus<U>, T> : detail::keeps_integers<U, T> {};
template <class T, class U>
struct is_exact<std::multiplies<U>, T> : detail::keeps_integers<U, T> {};
template <class T, class U>
struct is_exact<std::bit_and<U>, T> : detail::keeps_integers<U, T> {};
template <class T, class U>
struct is_exact<std::bit_or<U>, T> : detail::keeps_integers<U, T> {};
template <class T, class U>
struct is_exact<std::bit_xor<U>, T> : detail::keeps_integers<U, T> {};
template <class T, class U>
struct is_exact<std::logical_and<U>, T> : detail::keeps_integers<U, T> {};
template <class T, class U>
struct is_exact<std::logical_or<U>, T> : detail::keeps_integers<U, T> {};

/// The value of `is_exact`.
template <class Op, class T>
inline constexpr bool is_exact_v = is_exact<Op, T>::value;

namespace detail {

/// True if `Op` returns only some of the values of T, so that the contribution of a single rank may be none of them.
/// Each of them combined with itself is itself.
template <class Op, class T>
inline constexpr bool gives_only_some = false;
template <class T, class U>
inline constexpr bool gives_only_some<std::logical_and<U>, T> = !std::is_same_v<T, bool>;
template <class T, class U>
inline constexpr bool gives_only_some<std::logical_or<U>, T> = !std::is_same_v<T, bool>;

/// True if a loop that combines two operands at a time is faster than one that combines more. Must be true only if
/// partial results need no rounding.
template <class Op, class T>
inline constexpr bool best_in_pairs = false;

}  // namespace detail

/// Types that can be sent as bytes.
template <class T>
concept element =
    std::is_trivially_copyable_v<T> && !std::is_const_v<T> && !std::is_volatile_v<T> && !std::is_pointer_v<T>;

namespace detail {

template <class Op, class T>
concept three_part_operation = requires(const Op& op, const T& value) {
  op.prepare(value);
  op.combine(op.prepare(value), op.prepare(value));
  op.finish(op.combine(op.prepare(value), op.prepare(value)), 1);
};

/// The result is cast, because the sum of two halves, or of other small floating-point types, is a float.
template <class Op, class T>
concept callable_operation = requires(const Op& op, const T& value) { static_cast<T>(op(value, value)); };

/// True if `Op` accepts values of T, but works on another type and rounds each T to that first.
template <class Op, class T>
inline constexpr bool rounds_first = false;

template <class Op, class... Others>
concept one_of = (std::same_as<Op, Others> || ...);

/// For example `std::plus<int>` on floats.
template <template <class> class Op, class Operand, class T>
  requires one_of<Op<void>, std::plus<void>, std::multiplies<void>, std::bit_and<void>, std::bit_or<void>,
                  std::bit_xor<void>> &&
               std::is_arithmetic_v<Operand> && std::is_arithmetic_v<T>
inline constexpr bool rounds_first<Op<Operand>, T> = !requires(const T& value) { Operand{value}; };

/// The type in which `Op` combines values of T: their accumulator, or T itself if the operation accepts only that.
template <class Op, class T>
using combining_type = std::conditional_t<callable_operation<Op, accumulator_t<T>>, accumulator_t<T>, T>;

}  // namespace detail

/// True if `Op` can combine elements of type `T`.
template <class Op, class T>
concept reduction_for = element<T> && std::is_trivially_copyable_v<Op> && !detail::rounds_first<Op, T> &&
                        (detail::three_part_operation<Op, T> || detail::callable_operation<Op, T>);

/// An operation in its three parts, however it was written. The engine uses operations only in this form.
///
/// Partial results are stored and sent as `partial`; they are widened to `accumulator`, combined, and narrowed once.
/// For small floating-point types the accumulator is float, unless the operation accepts only the type itself.
template <class Op, class T>
struct reduction {
  using partial = T;
  using accumulator = detail::combining_type<Op, T>;
  static constexpr bool prepares = false;  ///< true if there are `prepare` and `finish`

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr accumulator combine(const Op& op, const accumulator& a, const accumulator& b) {
    return static_cast<accumulator>(detail::apply(op, a, b));
  }
};

/// Operations with `prepare`, `combine` and `finish`.
template <class Op, class T>
  requires detail::three_part_operation<Op, T>
struct reduction<Op, T> {
  using partial = std::remove_cvref_t<decltype(std::declval<const Op&>().prepare(std::declval<const T&>()))>;
  using accumulator = partial;
  static constexpr bool prepares = true;

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr partial prepare(const Op& op, const T& value) { return op.prepare(value); }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr accumulator combine(const Op& op, const accumulator& a, const accumulator& b) {
    return op.combine(a, b);
  }
  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static constexpr T finish(const Op& op, const partial& value, int ranks) {
    return static_cast<T>(op.finish(value, ranks));
  }
};

HOCKET_END_NAMESPACE
