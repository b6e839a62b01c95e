// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A few neighbouring elements in registers, read and written by accesses of 16 bytes wherever they begin.
///
/// A kernel gets at the width of memory only by packs, and users' types have any size: four elements of 12 bytes are three
/// packs. What does not begin at a pack is read by the packs around it, and shifted; what is written there goes one element
/// at a time. `cut()` chooses groups such that what is written first begins at a pack, and no pack reaches outside.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/kernel/device/partition.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// `Count` values of T, as bytes: elements need no default constructor, and indices known to the compiler leave all of it in
/// registers.
template <class T, std::size_t Count, std::size_t Alignment = alignof(T)>
struct values_of {
  static_assert(std::is_trivially_copyable_v<T>);

  alignas(Alignment) unsigned char bytes[Count * sizeof(T)];

  HOCKET_HOST_DEVICE T get(std::size_t i) const {
    struct alignas(T) image {
      unsigned char bytes[sizeof(T)];
    } one;
    memcpy(one.bytes, bytes + i * sizeof(T), sizeof(T));
    return __builtin_bit_cast(T, one);
  }
  HOCKET_HOST_DEVICE void set(std::size_t i, const T& value) { memcpy(bytes + i * sizeof(T), &value, sizeof(T)); }
};

/// What one access moves.
struct alignas(pack_bytes) pack {
  std::uint32_t words[4];
};

/// `from` is a multiple of 16.
HOCKET_HOST_DEVICE inline pack load_pack(const unsigned char* from) {
#if defined(__CUDA_ARCH__)
  return *reinterpret_cast<const pack*>(from);
#else
  pack result;
  std::memcpy(&result, __builtin_assume_aligned(from, pack_bytes), pack_bytes);
  return result;
#endif
}

HOCKET_HOST_DEVICE inline void store_pack(unsigned char* to, const pack& value) {
#if defined(__CUDA_ARCH__)
  *reinterpret_cast<pack*>(to) = value;
#else
  std::memcpy(__builtin_assume_aligned(to, pack_bytes), &value, pack_bytes);
#endif
}

/// The 16 bytes that begin `bytes`, less than 16, behind the begin of `low`; `high` follows `low` in memory.
HOCKET_HOST_DEVICE inline pack shifted(const pack& low, const pack& high, unsigned bytes) {
  std::uint32_t words[8] = {low.words[0],  low.words[1],  low.words[2],  low.words[3],
                            high.words[0], high.words[1], high.words[2], high.words[3]};
  // By 8, by 4 and by less: an index that the compiler does not know would move the words to local memory.
  if ((bytes & 8) != 0) {
    for (int i = 0; i < 6; ++i) words[i] = words[i + 2];
  }
  if ((bytes & 4) != 0) {
    for (int i = 0; i < 5; ++i) words[i] = words[i + 1];
  }
  const unsigned bits = (bytes & 3) * 8;
  pack result{};
  for (int i = 0; i < 4; ++i) {
    const std::uint64_t both = words[i] | std::uint64_t{words[i + 1]} << 32;
    result.words[i] = static_cast<std::uint32_t>(both >> bits);
  }
  return result;
}

/// `Count` elements that fill whole packs.
template <class T, std::size_t Count>
struct group : values_of<T, Count, (alignof(T) > pack_bytes ? alignof(T) : pack_bytes)> {
  static_assert(Count * sizeof(T) % pack_bytes == 0);
  static constexpr std::size_t packs = Count * sizeof(T) / pack_bytes;

  HOCKET_HOST_DEVICE void set_pack(std::size_t i, const pack& value) {
    memcpy(this->bytes + i * pack_bytes, &value, pack_bytes);
  }
  HOCKET_HOST_DEVICE pack get_pack(std::size_t i) const {
    pack value;
    memcpy(&value, this->bytes + i * pack_bytes, pack_bytes);
    return value;
  }
};

/// The elements from `from` on. Reads the packs around them, which `cut()` has kept within their buffer.
template <std::size_t Count, class T>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE group<T, Count> load_group(const T* from) {
  group<T, Count> result;
  const unsigned shift = shift_of(reinterpret_cast<std::uintptr_t>(from));
  const unsigned char* const begin = reinterpret_cast<const unsigned char*>(from) - shift;
  if (shift == 0) {  // on all threads alike
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < result.packs; ++i) result.set_pack(i, load_pack(begin + i * pack_bytes));
    return result;
  }
  pack low = load_pack(begin);
  HOCKET_DETAIL_UNROLL
  for (std::size_t i = 0; i < result.packs; ++i) {
    const pack high = load_pack(begin + (i + 1) * pack_bytes);
    result.set_pack(i, shifted(low, high, shift));
    low = high;
  }
  return result;
}

/// The elements from `first` on of a buffer of `count`, wherever they are in it: zeros stand for those behind its end. For
/// groups that can't be chosen by `cut()`, as something else depends on where they begin.
template <std::size_t Count, class T>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE group<T, Count> load_group_within(const T* buffer, std::size_t count,
                                                                          std::size_t first) {
  if (packs_lie_within({reinterpret_cast<std::uintptr_t>(buffer), sizeof(T)}, count, first, Count)) {
    return load_group<Count>(buffer + first);
  }
  group<T, Count> result;
  HOCKET_DETAIL_UNROLL
  for (std::size_t i = 0; i < Count; ++i) result.set(i, first + i < count ? buffer[first + i] : T{});
  return result;
}

/// Writes the elements to `to` and behind it: by packs if one begins there, else one element at a time.
template <class T, std::size_t Count>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE void store_group(T* to, const group<T, Count>& values) {
  if (shift_of(reinterpret_cast<std::uintptr_t>(to)) == 0) {
    auto* const begin = reinterpret_cast<unsigned char*>(to);
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < values.packs; ++i) store_pack(begin + i * pack_bytes, values.get_pack(i));
    return;
  }
  HOCKET_DETAIL_UNROLL
  for (std::size_t i = 0; i < Count; ++i) to[i] = values.get(i);
}

/// The same, for those before the end of a buffer of `count`.
template <class T, std::size_t Count>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE void store_group_within(T* buffer, std::size_t count, std::size_t first,
                                                                const group<T, Count>& values) {
  if (first + Count <= count) return store_group(buffer + first, values);
  HOCKET_DETAIL_UNROLL
  for (std::size_t i = 0; i < Count; ++i) {
    if (first + i < count) buffer[first + i] = values.get(i);
  }
}

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
