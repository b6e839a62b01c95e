// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a step's gradients add up to beside themselves, and in which types they can be added up. Losses and counts are
/// summed with the gradients, so that all are divided by one number, once.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/operation/exact_sum.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// What a step adds up to, over all microbatches and ranks. Equal on all ranks, the times apart.
struct gradient_totals {
  double loss = 0;    ///< sum of what `end_microbatch` was told
  double count = 0;   ///< likewise; what gradients and loss are to be divided by
  int abandoned = 0;  ///< how many of the group's ranks gave the step up: unless 0, there is no gradient

  /// How long this rank did nothing but wait for other ranks' gradients. Waits for parameters come to it: see
  /// `flat_parameters::take_time`.
  double exposed_seconds = 0;
  /// How long it moved gradients on in between, while the backward pass waited. No moment is in both.
  double driving_seconds = 0;
};

namespace detail {

template <class T>
inline constexpr bool is_exact_sum = false;
template <class T>
inline constexpr bool is_exact_sum<exact_sum<T>> = true;

template <class T>
struct checked_sum_type {
  static constexpr bool value = std::is_floating_point_v<T> || is_exact_sum<T>;
  static_assert(value,
                "gradients<T>: T is what sums are kept in: float, double, or exact_sum of one. A narrower type would "
                "lose small summands: say gradients<float>, and with(wire<bfloat16>) for what travels");
};

template <class T, class Options>
struct checked_wire_type {
  static constexpr bool value =
      !is_exact_sum<T> || !Options::template has<kind::wire> || Options::template is_hint<kind::wire>;
  static_assert(value,
                "gradients<exact_sum<...>>(...): exact sums travel as they are, and wire<...> would round them: leave "
                "out one of the two");
};

/// Whether values of `From` become summands of a sum of `T`, a floating-point number or an exact sum, unrounded.
template <class From, class T>
constexpr bool fits_into() noexcept {
  if constexpr (is_exact_sum<T>) {
    return fits_into<From, typename T::value_type>();
  } else if constexpr (std::is_arithmetic_v<From>) {
    return std::numeric_limits<From>::digits <= std::numeric_limits<T>::digits;
  } else {
    return std::convertible_to<From, T>;  // a narrow float, as bfloat16
  }
}

}  // namespace detail

HOCKET_END_NAMESPACE
