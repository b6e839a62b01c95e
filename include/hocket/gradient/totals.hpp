// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sums of a step other than gradients, and the types in which gradients can be summed. Losses and counts are summed
/// like the gradients, so that all are divided by one number, once.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/operation/exact_sum.hpp>

#include <concepts>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// Sums of a step over all microbatches and ranks. Equal on all ranks, except the times.
struct gradient_totals {
  double loss = 0;    ///< sum of the losses passed to `end_microbatch`
  double count = 0;   ///< sum of the counts, by which gradients and loss must be divided
  int abandoned = 0;  ///< number of ranks that abandoned the step: unless 0, there is no gradient

  /// Time in which this rank only waited for other ranks' gradients. For waits for parameters, see
  /// `flat_parameters::take_time`.
  double exposed_seconds = 0;
  /// Time to progress gradients while the backward pass waited. No interval counts in both.
  double driving_seconds = 0;
};

namespace detail {

template <class T>
inline constexpr bool is_exact_sum = false;
template <class T>
inline constexpr bool is_exact_sum<exact_sum<T>> = true;

/// Returns whether a `From` can be added to a sum of type `T`, floating-point or exact, without rounding it first.
template <class From, class T>
constexpr bool fits_into() noexcept {
  if constexpr (is_exact_sum<T>) {
    return fits_into<From, typename T::value_type>();
  } else if constexpr (std::is_arithmetic_v<From>) {
    return std::numeric_limits<From>::digits <= std::numeric_limits<T>::digits;
  } else {
    return std::convertible_to<From, T>;  // a narrow float such as bfloat16
  }
}

}  // namespace detail

HOCKET_END_NAMESPACE
