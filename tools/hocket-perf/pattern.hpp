// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The contributions of the ranks, which let a result be checked element by element: values depend on rank and
/// position, and every combination of them is exact, so that the result is known for any order of combination.
#pragma once

#include <hocket/operation/operations.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/scalar/scalar.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <type_traits>

namespace perf {

/// Returns a pseudo-random number, different for each rank, position and salt.
constexpr std::uint64_t scramble(int rank, std::size_t position, unsigned salt) noexcept {
  std::uint64_t x = position * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(rank) * 0xd1b54a32d192ed03U + salt;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
  x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93U;
  return x ^ (x >> 32);
}

/// Selects the values: a new salt gives new values, so that an old result is not mistaken for a current one.
struct contents {
  unsigned salt = 0;
  bool zeros = false;  ///< all are 0, which no operation changes: in-place results can be contributed repeatedly
};

/// A standard library operation on types for which it returns another type: the sum of two `half` is a float.
template <class Op>
struct rounded {
  static constexpr bool commutative = true;
  template <class T>
  constexpr T operator()(const T& a, const T& b) const {
    return static_cast<T>(Op{}(a, b));
  }
};
template <class Op, class T>
using on = std::conditional_t<hocket::reduction_for<Op, T>, Op, rounded<Op>>;

template <class T>
using sum = on<std::plus<>, T>;
template <class T>
using product = on<std::multiplies<>, T>;

/// Returns the largest integer for which T represents all integers from 0 to it exactly.
template <class T>
constexpr std::int64_t largest_whole() noexcept {
  constexpr int digits = std::min(std::numeric_limits<T>::digits, 24);
  return (std::int64_t{1} << digits) - (hocket::is_floating<T> ? 0 : 1);
}

/// Returns true on at most `most` of the ranks, which differ between positions.
constexpr bool takes_part(int rank, int ranks, std::size_t position, std::int64_t most) noexcept {
  if (ranks <= most) return true;
  const auto p = static_cast<std::size_t>(ranks);
  return (static_cast<std::size_t>(rank) + position) % p < static_cast<std::size_t>(most);
}

/// Values whose sum over any subset of the ranks is an integer that T represents exactly.
template <class T>
struct summands {
  static constexpr std::int64_t value(int rank, int ranks, std::size_t position, unsigned salt) noexcept {
    constexpr std::int64_t largest = largest_whole<T>();
    if (!takes_part(rank, ranks, position, largest)) return 0;
    const std::int64_t share = std::max<std::int64_t>(1, largest / ranks);
    return static_cast<std::int64_t>(scramble(rank, position, salt) % static_cast<std::uint64_t>(share + 1));
  }
  static constexpr std::int64_t total(int ranks, std::size_t position, unsigned salt) noexcept {
    std::int64_t all = 0;
    for (int rank = 0; rank < ranks; ++rank) all += value(rank, ranks, position, salt);
    return all;
  }
};

/// The contribution of `rank` at `position`, and the result there, for one operation on T.
template <class T, class Op>
struct pattern;

template <class T>
struct pattern<T, sum<T>> {
  static constexpr T value(int rank, int ranks, std::size_t position, unsigned salt) noexcept {
    return static_cast<T>(summands<T>::value(rank, ranks, position, salt));
  }
  static constexpr T result(int ranks, std::size_t position, unsigned salt) noexcept {
    return static_cast<T>(summands<T>::total(ranks, position, salt));
  }
};

template <class T>
struct pattern<T, hocket::average> {
  static constexpr T value(int rank, int ranks, std::size_t position, unsigned salt) noexcept {
    return pattern<T, sum<T>>::value(rank, ranks, position, salt);
  }
  /// The sum is exact, so the single division determines the rounding.
  static constexpr T result(int ranks, std::size_t position, unsigned salt) noexcept {
    return hocket::average::finish(pattern<T, sum<T>>::result(ranks, position, salt), ranks);
  }
};

/// Powers of two, with so few factors other than 1 that no product exceeds the range of the smallest type.
template <class T>
struct pattern<T, product<T>> {
  static constexpr T value(int rank, int ranks, std::size_t position, unsigned salt) noexcept {
    return power(exponent(rank, ranks, position, salt));
  }
  static constexpr T result(int ranks, std::size_t position, unsigned salt) noexcept {
    int total = 0;
    for (int rank = 0; rank < ranks; ++rank) total += exponent(rank, ranks, position, salt);
    return power(total);
  }

 private:
  static constexpr int exponent(int rank, int ranks, std::size_t position, unsigned salt) noexcept {
    if (!takes_part(rank, ranks, position, 6)) return 0;
    const std::uint64_t number = scramble(rank, position, salt);
    return hocket::is_floating<T> ? static_cast<int>(number % 3) - 1 : static_cast<int>(number % 2);
  }
  static constexpr T power(int exponent) noexcept {
    return exponent < 0 ? static_cast<T>(1.0 / static_cast<double>(1 << -exponent)) : static_cast<T>(1 << exponent);
  }
};

template <class T, bool Largest>
struct extremes {
  static constexpr T value(int rank, int, std::size_t position, unsigned salt) noexcept {
    constexpr std::int64_t largest = largest_whole<T>();
    constexpr std::int64_t smallest = std::numeric_limits<T>::is_signed ? -largest : 0;
    constexpr auto span = static_cast<std::uint64_t>(largest - smallest + 1);
    return static_cast<T>(smallest + static_cast<std::int64_t>(scramble(rank, position, salt) % span));
  }
  static constexpr T result(int ranks, std::size_t position, unsigned salt) noexcept {
    T found = value(0, ranks, position, salt);
    for (int rank = 1; rank < ranks; ++rank) {
      const T other = value(rank, ranks, position, salt);
      found = (found < other) == Largest ? other : found;
    }
    return found;
  }
};
template <class T>
struct pattern<T, hocket::minimum> : extremes<T, false> {};
template <class T>
struct pattern<T, hocket::maximum> : extremes<T, true> {};

}  // namespace perf
