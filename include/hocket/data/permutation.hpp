// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A pseudo-random permutation of 0 to n - 1 that stores nothing: each element is computed from its index and a key.
///
/// It is a Feistel network: an index is a pair of digits, and each round adds to one digit a hash of the other one,
/// which can be undone. There are slightly more pairs than n; an index that leads outside is permuted again until it is
/// inside. Integers alone determine the result, so that all machines get the same permutation.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/mixed_bits.hpp>
#include <hocket/core/text.hpp>

#include <cmath>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace data {
namespace detail {

/// Returns a key for the part `number` of what has the key `key`.
constexpr std::uint64_t derived_key(std::uint64_t key, std::uint64_t number) noexcept {
  using hocket::detail::golden_ratio, hocket::detail::mixed_bits;
  return mixed_bits(mixed_bits(key + golden_ratio) + golden_ratio * (number + 1));
}

/// Returns the root of `value`, rounded up.
inline std::uint64_t rounded_up_root(std::uint64_t value) noexcept {
  auto root = static_cast<std::uint64_t>(std::sqrt(static_cast<double>(value)));
  while (root * root > value) --root;
  while (root * root < value) ++root;
  return root;
}

}  // namespace detail

/// A permutation of 0 to `size() - 1`. A value: equal for equal size and key, on all machines.
class permutation {
 public:
  /// The most elements that a permutation has.
  static constexpr std::uint64_t most = std::uint64_t{1} << 62;

  /// Raises `invalid_argument` if `size` is more than `most`.
  permutation(std::uint64_t size, std::uint64_t key) : size_(size), key_(key), rounds_(rounds_for(size)) {
    if (size > most) {
      raise(errc::invalid_argument,
            hocket::detail::concat({"a permutation has at most 2^62 elements, and ", size, " are asked for"}),
            {.operation = "data::permutation"});
    }
    low_ = size < 2 ? 1 : detail::rounded_up_root(size);
    high_ = size < 2 ? 1 : (size - 1) / low_ + 1;
  }

  std::uint64_t size() const noexcept { return size_; }

  /// Returns element `index`, which must be less than `size()`. Cost: about 50 ns, whatever the size.
  std::uint64_t operator[](std::uint64_t index) const noexcept {
    do index = forward(index);
    while (index >= size_);
    return index;
  }

  /// Returns the index of element `value`, which must be less than `size()`.
  std::uint64_t index_of(std::uint64_t value) const noexcept {
    do value = backward(value);
    while (value >= size_);
    return value;
  }

 private:
  /// With few elements, a round adds few bits of the key.
  static constexpr unsigned rounds_for(std::uint64_t size) noexcept { return size < 2 ? 0 : size < 1000 ? 24 : 8; }

  /// Returns a number below `limit`, which is at most 2^31.
  std::uint64_t hash(unsigned round, std::uint64_t digit, std::uint64_t limit) const noexcept {
    using hocket::detail::golden_ratio, hocket::detail::mixed_bits;
    return (mixed_bits(key_ + golden_ratio * round + digit) >> 32) * limit >> 32;
  }

  std::uint64_t forward(std::uint64_t index) const noexcept {
    std::uint64_t high = index / low_, low = index - high * low_;
    for (unsigned round = 0; round < rounds_; round += 2) {
      low += hash(round, high, low_);
      if (low >= low_) low -= low_;
      high += hash(round + 1, low, high_);
      if (high >= high_) high -= high_;
    }
    return high * low_ + low;
  }

  std::uint64_t backward(std::uint64_t value) const noexcept {
    std::uint64_t high = value / low_, low = value - high * low_;
    for (unsigned round = rounds_; round > 0; round -= 2) {
      const std::uint64_t of_low = hash(round - 1, low, high_);
      high = high >= of_low ? high - of_low : high + high_ - of_low;
      const std::uint64_t of_high = hash(round - 2, high, low_);
      low = low >= of_high ? low - of_high : low + low_ - of_high;
    }
    return high * low_ + low;
  }

  std::uint64_t size_, key_;
  unsigned rounds_;
  std::uint64_t low_, high_;  ///< numbers of values of the digits
};

}  // namespace data
HOCKET_END_NAMESPACE
