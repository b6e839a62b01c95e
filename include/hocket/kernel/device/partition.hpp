// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which elements of a buffer a kernel accesses 16 bytes at a time, and which thread accesses which elements.
///
/// Memory reaches full speed only with aligned accesses of 16 bytes, and buffers begin at any address. [0, n) is
/// therefore cut into a head, groups of elements that fill whole packs of 16 bytes, and a tail. The groups begin where
/// the first pointer, the one that is written, is aligned to a pack. Other pointers may not be: they are read by the
/// aligned packs around each group, and shifted. Packs that extend beyond a buffer are left to head and tail, so that
/// no byte outside is ever read.
///
/// Plain integer arithmetic, the same in kernels and on the host, where it is tested for every alignment.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// Bytes of the widest access that all GPUs have.
inline constexpr std::size_t pack_bytes = 16;

HOCKET_HOST_DEVICE constexpr std::size_t greatest_common_divisor(std::size_t a, std::size_t b) noexcept {
  while (b != 0) {
    const std::size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// The fewest elements of `size` bytes that fill whole packs.
HOCKET_HOST_DEVICE constexpr std::size_t elements_that_fill_packs(std::size_t size) noexcept {
  return pack_bytes / greatest_common_divisor(size, pack_bytes);
}

/// Elements in a group: the fewest that fill whole packs of each of these sizes (all of them powers of 2, as quotients of
/// 16 are).
HOCKET_HOST_DEVICE constexpr std::size_t group_of(std::size_t size) noexcept { return elements_that_fill_packs(size); }
template <class... Sizes>
HOCKET_HOST_DEVICE constexpr std::size_t group_of(std::size_t size, Sizes... sizes) noexcept {
  const std::size_t first = elements_that_fill_packs(size);
  const std::size_t others = group_of(static_cast<std::size_t>(sizes)...);
  return first > others ? first : others;
}

/// Address of a buffer, and number of bytes of each of its elements.
struct extent {
  std::uintptr_t address = 0;
  std::size_t size = 1;
};

/// Number of elements before the first at a multiple of `width`, a power of 2 up to 16; `pack_bytes` if there is none.
HOCKET_HOST_DEVICE constexpr std::size_t elements_to_alignment(const extent& buffer, std::size_t width) noexcept {
  for (std::size_t head = 0; head < pack_bytes; ++head) {
    if ((buffer.address + head * buffer.size) % width == 0) return head;
  }
  return pack_bytes;
}

/// Returns the widest access, in bytes, that is aligned at this address and at all multiples of 16 after it.
HOCKET_HOST_DEVICE constexpr std::size_t widest_access(std::uintptr_t address) noexcept {
  const std::size_t lowest_bit = address & (~address + 1);
  return lowest_bit == 0 || lowest_bit > pack_bytes ? pack_bytes : lowest_bit;
}

/// Returns the offset of an address in its pack: the number of bytes by which the packs read there must be shifted.
HOCKET_HOST_DEVICE constexpr unsigned shift_of(std::uintptr_t address) noexcept {
  return static_cast<unsigned>(address % pack_bytes);
}

/// True if the packs around `elements` elements from `first` on lie within the buffer, which has `count` of them.
HOCKET_HOST_DEVICE constexpr bool packs_lie_within(const extent& buffer, std::size_t count, std::size_t first,
                                                   std::size_t elements) noexcept {
  const std::size_t begin = first * buffer.size;
  const std::size_t end = begin + elements * buffer.size;
  const std::size_t beyond = (pack_bytes - shift_of(buffer.address + end)) % pack_bytes;
  return shift_of(buffer.address + begin) <= begin && end + beyond <= count * buffer.size;
}

/// [0, count) in three parts: `head` elements, `groups` groups of `group` elements, and what is left.
struct partition {
  std::size_t count = 0;
  std::size_t head = 0;
  std::size_t groups = 0;
  std::size_t group = 1;

  HOCKET_HOST_DEVICE constexpr std::size_t group_begin(std::size_t index) const noexcept {
    return head + index * group;
  }

  /// Number of elements that are in no group, and the i-th of these.
  HOCKET_HOST_DEVICE constexpr std::size_t ungrouped() const noexcept { return count - groups * group; }
  HOCKET_HOST_DEVICE constexpr std::size_t ungrouped_element(std::size_t i) const noexcept {
    return i < head ? i : i + groups * group;
  }

  /// Removes groups at both ends until the packs around the others lie within `buffer`.
  HOCKET_HOST_DEVICE constexpr void keep_within(const extent& buffer) noexcept {
    if (groups != 0 && starts_before(buffer)) {
      head += group;
      --groups;
    }
    if (groups != 0 && ends_behind(buffer)) --groups;
  }

 private:
  /// The packs that a group is read by extend up to 15 bytes beyond both of its ends; a group has 16 bytes or more.
  HOCKET_HOST_DEVICE constexpr bool starts_before(const extent& buffer) const noexcept {
    const std::size_t begin = head * buffer.size;
    return shift_of(buffer.address + begin) > begin;
  }
  HOCKET_HOST_DEVICE constexpr bool ends_behind(const extent& buffer) const noexcept {
    const std::size_t end = group_begin(groups) * buffer.size;
    const unsigned beyond = shift_of(buffer.address + end);
    return beyond != 0 && end + (pack_bytes - beyond) > count * buffer.size;
  }
};

/// Cuts [0, count) so that groups of `group` elements begin where `written` has a pack, if one of its elements does;
/// otherwise at the best alignment. `read` are the other buffers, with as many elements of their own size.
template <class... Extents>
HOCKET_HOST_DEVICE constexpr partition cut(std::size_t count, std::size_t group, const extent& written,
                                           const Extents&... read) noexcept {
  std::size_t width = pack_bytes;
  while (elements_to_alignment(written, width) == pack_bytes) width /= 2;
  const std::size_t head = elements_to_alignment(written, width);
  partition parts{count, head < count ? head : count, 0, group};
  parts.groups = (count - parts.head) / group;
  parts.keep_within(written);  // it may be read, too, and have no pack
  (parts.keep_within(read), ...);
  return parts;
}

/// Calls `on_group(first_element)` for each group and `on_element(element)` for each other element that is assigned to
/// `thread` of `threads`. Neighbouring threads have neighbouring groups, so that a warp accesses contiguous memory.
HOCKET_DETAIL_CALLS_USERS
template <class OnGroup, class OnElement>
HOCKET_HOST_DEVICE constexpr void visit(const partition& parts, std::size_t thread, std::size_t threads,
                                        const OnGroup& on_group, const OnElement& on_element) {
  for (std::size_t index = thread; index < parts.groups; index += threads) on_group(parts.group_begin(index));
  for (std::size_t i = thread; i < parts.ungrouped(); i += threads) on_element(parts.ungrouped_element(i));
}

/// Number of blocks, and of threads in each.
struct launch_shape {
  unsigned blocks = 1;
  unsigned threads = 256;
};

/// The shape of a launch that moves `bytes`: enough blocks for two packs per thread, but at most `resident`, which the
/// GPU runs at the same time, because threads continue with further groups. More blocks would run alone at the end.
HOCKET_HOST_DEVICE constexpr launch_shape shape_of(std::size_t bytes, int resident) noexcept {
  constexpr std::size_t packs_per_thread = 2;
  launch_shape shape;
  const std::size_t bytes_per_block = shape.threads * packs_per_thread * pack_bytes;
  const std::size_t useful = bytes / bytes_per_block + (bytes % bytes_per_block != 0 ? 1 : 0);
  const std::size_t most = static_cast<std::size_t>(resident < 1 ? 1 : resident);
  shape.blocks = static_cast<unsigned>(useful < 1 ? 1 : useful < most ? useful : most);
  return shape;
}

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
