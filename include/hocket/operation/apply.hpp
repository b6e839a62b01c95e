// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Arithmetic with the same results on the host and in a kernel.
///
/// Three things differ by default. Kernels can't call the function objects of the standard library, which are not
/// marked for devices, nor `std::numeric_limits<float>::quiet_NaN()`. And nvcc rounds a product and the sum that
/// follows it only once, which gives other bits than the host's two roundings.
#pragma once

#include <hocket/core/config.hpp>

#include <functional>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// op(a, b).
HOCKET_DETAIL_CALLS_USERS
template <class Op, class T>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr decltype(auto) apply(const Op& op, const T& a, const T& b) {
  return op(a, b);
}

/// True if `apply` calls `Op` directly, and has no replacement for it.
template <class Op>
struct is_applied_as_it_is : std::true_type {};

#if defined(__CUDACC__)
/// A replacement for `object<U>`: if U is not void, its arguments and its result are of type U.
#define HOCKET_DETAIL_APPLY(object, sign)                                                                       \
  template <class U, class T>                                                                                   \
  HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr auto apply(const std::object<U>&, const T& a, const T& b) { \
    if constexpr (std::is_void_v<U>) {                                                                          \
      return a sign b;                                                                                          \
    } else {                                                                                                    \
      return std::invoke_result_t<std::object<U>, const T&, const T&>(static_cast<const U&>(a)                  \
                                                                          sign static_cast<const U&>(b));       \
    }                                                                                                           \
  }                                                                                                             \
  template <class U>                                                                                            \
  struct is_applied_as_it_is<std::object<U>> : std::false_type {};

HOCKET_DETAIL_APPLY(plus, +)
HOCKET_DETAIL_APPLY(multiplies, *)
HOCKET_DETAIL_APPLY(bit_and, &)
HOCKET_DETAIL_APPLY(bit_or, |)
HOCKET_DETAIL_APPLY(bit_xor, ^)
HOCKET_DETAIL_APPLY(logical_and, &&)
HOCKET_DETAIL_APPLY(logical_or, ||)
#undef HOCKET_DETAIL_APPLY
#endif

/// `std::numeric_limits<T>::quiet_NaN()` as a value that kernels can read.
template <class T>
inline constexpr T quiet_nan_of = std::numeric_limits<T>::quiet_NaN();

/// a * b, rounded before anything is added to it: always in a kernel; on the host if g++ is called with -std=c++20 or
/// has no fused instruction. Takes values, because kernels can't refer to static constants.
HOCKET_DETAIL_CALLS_USERS
template <class T>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE constexpr auto rounded_product(T a, T b) {
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_same_v<T, float>) return __fmul_rn(a, b);
  if constexpr (std::is_same_v<T, double>) return __dmul_rn(a, b);
#endif
  return a * b;
}

}  // namespace detail
HOCKET_END_NAMESPACE
