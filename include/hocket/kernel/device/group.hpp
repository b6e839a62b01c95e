// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A few neighbouring elements in registers, read and written by accesses of 16 bytes, at any address.
///
/// Kernels reach the full width of memory only by packs, and user-defined types have any size: four elements of 12
/// bytes are three packs. Elements that do not begin at a pack are read by the packs around them and shifted, and
/// written one at a time. `cut()` chooses groups so that the written ones begin at a pack, and no pack leaves a buffer.
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

/// `Count` values of T, as bytes: elements need no default constructor, and everything stays in registers if the
/// compiler knows the indices.
template <class T, std::size_t Count>
struct values_of {
  static_assert(std::is_trivially_copyable_v<T>);

  alignas(T) unsigned char bytes[Count * sizeof(T)];

  HOCKET_HOST_DEVICE T get(std::size_t i) const {
    struct alignas(T) image {
      unsigned char bytes[sizeof(T)];
    } one;
    memcpy(one.bytes, bytes + i * sizeof(T), sizeof(T));
    return __builtin_bit_cast(T, one);
  }
  HOCKET_HOST_DEVICE void set(std::size_t i, const T& value) { memcpy(bytes + i * sizeof(T), &value, sizeof(T)); }
};

/// The data of one access.
struct alignas(pack_bytes) pack {
  std::uint32_t words[4];
};

/// `from` must be a multiple of 16.
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

/// Returns the 16 bytes at offset `bytes`, less than 16, of `low` and `high`, which follows `low` in memory.
HOCKET_HOST_DEVICE inline pack shifted(const pack& low, const pack& high, unsigned bytes) {
  std::uint32_t words[8] = {low.words[0],  low.words[1],  low.words[2],  low.words[3],
                            high.words[0], high.words[1], high.words[2], high.words[3]};
  // By 8, by 4 and by the rest: an index that the compiler does not know would move the words to local memory.
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

/// `Count` elements that fill whole packs, stored as words: if stored as bytes, the first are unpacked before the next
/// are loaded, and memory is idle.
template <class T, std::size_t Count>
struct group {
  static_assert(std::is_trivially_copyable_v<T> && Count * sizeof(T) % pack_bytes == 0);
  static constexpr std::size_t packs = Count * sizeof(T) / pack_bytes;

  pack all[packs];

  HOCKET_HOST_DEVICE T get(std::size_t i) const {
    if constexpr (is_short) {
      return __builtin_bit_cast(T, static_cast<bits_of_short>(word(i / in_word) >> (i % in_word * short_bits)));
    } else {
      struct alignas(T) image {
        unsigned char bytes[sizeof(T)];
      } one;
      memcpy(one.bytes, bytes() + i * sizeof(T), sizeof(T));
      return __builtin_bit_cast(T, one);
    }
  }
  /// Call in order, starting with 0, for a group that is no longer read: the first value of a word clears the others.
  HOCKET_HOST_DEVICE void set(std::size_t i, const T& value) {
    if constexpr (is_short) {
      bits_of_short bits = 0;
      memcpy(&bits, &value, sizeof(T));
      const std::size_t at = i % in_word * short_bits;
      const std::uint32_t before = at == 0 ? 0 : word(i / in_word);
      word(i / in_word) = before | std::uint32_t{bits} << at;  // devices are little-endian, as their hosts are
    } else {
      memcpy(bytes() + i * sizeof(T), &value, sizeof(T));
    }
  }

 private:
  static constexpr bool is_short = sizeof(T) <= 2;
  using bits_of_short = std::conditional_t<sizeof(T) == 1, std::uint8_t, std::uint16_t>;
  static constexpr std::size_t in_word = is_short ? sizeof(std::uint32_t) / sizeof(T) : 1;
  static constexpr std::size_t short_bits = 8 * sizeof(T);

  HOCKET_HOST_DEVICE std::uint32_t word(std::size_t i) const { return all[i / 4].words[i % 4]; }
  HOCKET_HOST_DEVICE std::uint32_t& word(std::size_t i) { return all[i / 4].words[i % 4]; }
  HOCKET_HOST_DEVICE const unsigned char* bytes() const { return reinterpret_cast<const unsigned char*>(all); }
  HOCKET_HOST_DEVICE unsigned char* bytes() { return reinterpret_cast<unsigned char*>(all); }
};

/// The packs around `Count` elements, as read from memory and not yet used. Code that makes these of all sources first
/// has all loads in flight before the first arrives.
template <class T, std::size_t Count>
struct packs_around {
  static constexpr std::size_t packs = group<T, Count>::packs;

  /// Reads packs that `cut()` restricts to the elements' buffer.
  HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE explicit packs_around(const T* from)
      : shift(shift_of(reinterpret_cast<std::uintptr_t>(from))) {
    const unsigned char* const begin = reinterpret_cast<const unsigned char*>(from) - shift;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < packs; ++i) all[i] = load_pack(begin + i * pack_bytes);
    all[packs] = shift == 0 ? pack{} : load_pack(begin + packs * pack_bytes);
  }

  HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE group<T, Count> elements() const {
    group<T, Count> result;
    if (shift == 0) {  // the same on all threads
      HOCKET_DETAIL_UNROLL
      for (std::size_t i = 0; i < packs; ++i) result.all[i] = all[i];
    } else {
      HOCKET_DETAIL_UNROLL
      for (std::size_t i = 0; i < packs; ++i) result.all[i] = shifted(all[i], all[i + 1], shift);
    }
    return result;
  }

  pack all[packs + 1];
  unsigned shift;
};

/// Loads the elements from `from` on.
template <std::size_t Count, class T>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE group<T, Count> load_group(const T* from) {
  return packs_around<T, Count>(from).elements();
}

/// Loads the elements from `first` on of a buffer of `count`, at any position: those beyond the end are zeros. For
/// groups that `cut()` can't choose, because their position is given.
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

/// Writes the elements to `to`: by packs if one begins there, otherwise one element at a time.
template <class T, std::size_t Count>
HOCKET_HOST_DEVICE HOCKET_ALWAYS_INLINE void store_group(T* to, const group<T, Count>& values) {
  if (shift_of(reinterpret_cast<std::uintptr_t>(to)) == 0) {
    auto* const begin = reinterpret_cast<unsigned char*>(to);
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < values.packs; ++i) store_pack(begin + i * pack_bytes, values.all[i]);
    return;
  }
  HOCKET_DETAIL_UNROLL
  for (std::size_t i = 0; i < Count; ++i) to[i] = values.get(i);
}

/// The same, for the elements before the end of a buffer of `count`.
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
