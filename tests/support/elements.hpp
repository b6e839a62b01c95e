// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Elements for tests: a type whose operation is not commutative, values for which each order of additions gives
/// different bits, and buffers that detect writes beside them.
#pragma once

#include <hocket/operation/exact_sum.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/scalar/scalar.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace hocket_test {

/// x -> A x + b in two dimensions, modulo 2^32. 24 bytes; composition is associative and not commutative.
struct affine_map {
  std::uint32_t a[2][2] = {{1, 0}, {0, 1}};
  std::uint32_t b[2] = {0, 0};

  friend bool operator==(const affine_map&, const affine_map&) = default;
};
static_assert(sizeof(affine_map) == 24);

struct compose {
  HOCKET_HOST_DEVICE affine_map operator()(const affine_map& outer, const affine_map& inner) const {
    affine_map result;
    for (int i = 0; i < 2; ++i) {
      for (int j = 0; j < 2; ++j) result.a[i][j] = outer.a[i][0] * inner.a[0][j] + outer.a[i][1] * inner.a[1][j];
      result.b[i] = outer.a[i][0] * inner.b[0] + outer.a[i][1] * inner.b[1] + outer.b[i];
    }
    return result;
  }
};

/// Three bytes, so that elements have odd addresses.
struct triple {
  std::uint8_t bytes[3] = {};

  friend bool operator==(const triple&, const triple&) = default;
};
static_assert(sizeof(triple) == 3);

/// A hash of (rank, i): the same number in every run.
inline std::uint64_t random_bits(int rank, std::size_t i) {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) << 40) + i + 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// The number of powers of two by which samples of T may differ without overflow in sums of several of them.
template <class T>
inline constexpr int exponent_range = std::is_same_v<T, double>                ? 40
                                      : std::is_same_v<T, hocket::half>        ? 6
                                      : std::is_same_v<T, hocket::float8_e4m3> ? 3
                                      : std::is_same_v<T, hocket::float8_e5m2> ? 5
                                                                               : 20;

/// Element i of rank `rank`. Floating-point samples have both signs and widely differing magnitudes, and near
/// opposites on neighbouring ranks, so that sums cancel. Integers are small enough for products of eight.
template <class T>
T sample(int rank, std::size_t i) {
  const std::uint64_t bits = random_bits(rank, i);
  if constexpr (std::is_same_v<T, affine_map>) {
    const auto word = [&](unsigned k) { return static_cast<std::uint32_t>(random_bits(rank, 8 * i + k)); };
    return {{{word(0), word(1)}, {word(2), word(3)}}, {word(4), word(5)}};
  } else if constexpr (std::is_same_v<T, triple>) {
    const auto byte = [&](unsigned k) { return static_cast<std::uint8_t>(bits >> (8 * k)); };
    return {{byte(0), byte(1), byte(2)}};
  } else if constexpr (std::is_same_v<T, hocket::exact_sum<float>>) {
    hocket::exact_sum<float> sum(sample<float>(rank, i));
    sum.add(sample<float>(rank, i + 1));
    return sum;
  } else if constexpr (hocket::is_floating<T>) {
    const bool cancels = bits % 4 == 0 && rank % 2 == 1;
    const std::uint64_t source = cancels ? random_bits(rank - 1, i) : bits;
    const int exponent = static_cast<int>((source >> 8) % (2 * exponent_range<T> + 1)) - exponent_range<T>;
    const double fraction = 1 + static_cast<double>(source >> 12) * 0x1p-52;
    const double value = std::ldexp((source & 16) != 0 ? -fraction : fraction, exponent);
    return static_cast<T>(cancels ? -value * (1 + 0x1p-20) : value);
  } else {
    return static_cast<T>(static_cast<int>(bits % 7) - (std::is_signed_v<T> ? 3 : 0));
  }
}

template <class T>
std::vector<T> samples(int rank, std::size_t count, std::size_t first = 0) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i) all[i] = sample<T>(rank, first + i);
  return all;
}

/// A vector of samples for each rank.
template <class T>
std::vector<std::vector<T>> samples_of_all(int ranks, std::size_t count) {
  std::vector<std::vector<T>> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(samples<T>(rank, count));
  return all;
}

template <class T>
bool same_bytes(std::span<const T> a, std::span<const T> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// Describes the first element that differs.
template <class T>
std::string first_difference(std::span<const T> a, std::span<const T> b) {
  if (a.size() != b.size()) return std::to_string(a.size()) + " elements instead of " + std::to_string(b.size());
  std::size_t i = 0;
  while (i < a.size() && std::memcmp(&a[i], &b[i], sizeof(T)) == 0) ++i;
  std::string text = "element " + std::to_string(i) + " of " + std::to_string(a.size()) + " differs";
  if constexpr (std::is_convertible_v<T, double>) {
    text +=
        ": " + std::to_string(static_cast<double>(a[i])) + " instead of " + std::to_string(static_cast<double>(b[i]));
  }
  return text;
}

/// `size` elements that begin `offset` elements after an aligned address, between bytes that must not change.
template <class T>
class guarded {
 public:
  explicit guarded(std::size_t size, std::size_t offset = 0) : begin_(guard + offset), size_(size) {
    bytes_.assign((begin_ + size + guard) * sizeof(T) + alignment, pattern);
    const auto misaligned = reinterpret_cast<std::uintptr_t>(bytes_.data()) % alignment;
    shift_ = misaligned == 0 ? 0 : alignment - misaligned;
  }
  explicit guarded(const std::vector<T>& values, std::size_t offset = 0) : guarded(values.size(), offset) {
    if (!values.empty()) std::memcpy(elements().data(), values.data(), values.size() * sizeof(T));
  }

  std::span<T> elements() { return {reinterpret_cast<T*>(bytes_.data() + shift_) + begin_, size_}; }

  bool intact() const {
    const std::size_t first = shift_ + begin_ * sizeof(T);
    const std::size_t last = first + size_ * sizeof(T);
    for (std::size_t i = 0; i < bytes_.size(); ++i) {
      if ((i < first || i >= last) && bytes_[i] != pattern) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 4;
  static constexpr std::size_t alignment = 64;
  static constexpr std::byte pattern{0xa5};

  std::vector<std::byte> bytes_;
  std::size_t shift_ = 0;
  std::size_t begin_;
  std::size_t size_;
};

}  // namespace hocket_test
