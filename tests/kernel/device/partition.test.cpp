// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Each element is visited exactly once, by groups that begin at packs of the written buffer, and nothing outside of a
// buffer is read: for every alignment of one and of two buffers, every element size, all counts up to several groups.
#include "support/catch.hpp"

#include <hocket/kernel/device/partition.hpp>

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace device = hocket::kernel::device;
using device::extent;

namespace {

constexpr std::uintptr_t base = 0x7f0000000000;

struct type {
  std::size_t size;
  std::size_t alignment;
};

/// Built-in sizes, and user-defined types: 12 and 24 bytes of 4-byte members, 3, 12 and 16 of bytes.
constexpr type types[] = {{1, 1},  {2, 2}, {4, 4},  {8, 8},  {16, 16}, {12, 4},
                          {24, 4}, {3, 1}, {12, 1}, {16, 4}, {40, 8}};

/// Number of visits of each element by `threads` threads.
std::vector<int> visits(const device::partition& parts, std::size_t threads) {
  std::vector<int> times(parts.count, 0);
  for (std::size_t thread = 0; thread < threads; ++thread) {
    device::visit(
        parts, thread, threads,
        [&](std::size_t first) {
          for (std::size_t i = first; i < first + parts.group; ++i) ++times.at(i);
        },
        [&](std::size_t element) { ++times.at(element); });
  }
  return times;
}

bool each_once(const device::partition& parts, std::size_t threads) {
  return visits(parts, threads) == std::vector<int>(parts.count, 1);
}

/// True if the packs that `parts` reads lie within the buffer.
bool reads_within(const device::partition& parts, const extent& buffer) {
  if (parts.groups == 0) return true;
  const std::uintptr_t first = buffer.address + parts.group_begin(0) * buffer.size;
  const std::uintptr_t last = buffer.address + parts.group_begin(parts.groups) * buffer.size;
  const std::uintptr_t begin = first / 16 * 16;
  const std::uintptr_t end = (last + 15) / 16 * 16;
  return begin >= buffer.address && end <= buffer.address + parts.count * buffer.size;
}

/// True if an element of the buffer begins at a multiple of 16. Tries more elements than cut() does.
bool has_a_pack(const extent& buffer) {
  for (std::size_t i = 0; i < 64; ++i) {
    if ((buffer.address + i * buffer.size) % 16 == 0) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a group is the smallest number of elements that fills whole packs") {
  for (std::size_t size = 1; size <= 64; ++size) {
    const std::size_t group = device::group_of(size);
    CHECK(group * size == std::lcm(size, std::size_t{16}));
    CHECK(device::group_of(size, std::size_t{4}) % group == 0);
    CHECK(device::group_of(size, std::size_t{4}) % 4 == 0);
  }
  STATIC_REQUIRE(device::group_of(4) == 4);
  STATIC_REQUIRE(device::group_of(4, 2, 1) == 16);
  STATIC_REQUIRE(device::group_of(12) == 4);
}

TEST_CASE("one buffer: each element is visited once, and each wide access is aligned") {
  for (const type& t : types) {
    const std::size_t group = device::group_of(t.size);
    for (std::uintptr_t offset = 0; offset < 16; offset += t.alignment) {
      const extent buffer{base + offset, t.size};
      bool once = true;
      bool aligned = true;
      bool grouped = true;
      for (std::size_t count = 0; count <= 5 * group + 17; ++count) {
        const device::partition parts = device::cut(count, group, buffer);
        once = once && each_once(parts, 1) && each_once(parts, 3) && each_once(parts, 64);
        if (has_a_pack(buffer)) {
          for (std::size_t g = 0; g < parts.groups; ++g) {
            aligned = aligned && (buffer.address + parts.group_begin(g) * t.size) % 16 == 0;
          }
          grouped = grouped && parts.head < 16 && parts.ungrouped() - parts.head < group;
        }
        aligned = aligned && reads_within(parts, buffer);
      }
      INFO("size " << t.size << ", alignment " << t.alignment << ", offset " << offset);
      CHECK(once);
      CHECK(aligned);
      CHECK(grouped);
    }
  }
}

TEST_CASE("two buffers that are misaligned differently: no byte outside is read, and few elements are left over") {
  for (const type& t : types) {
    for (const type& u : types) {
      const std::size_t group = device::group_of(t.size, u.size);
      bool once = true;
      bool within = true;
      bool grouped = true;
      for (std::uintptr_t offset = 0; offset < 16; offset += t.alignment) {
        for (std::uintptr_t other = 0; other < 16; other += u.alignment) {
          const extent written{base + offset, t.size};
          const extent read{base + 4096 + other, u.size};
          for (std::size_t count = 0; count <= 4 * group + 17; ++count) {
            const device::partition parts = device::cut(count, group, written, read);
            once = once && each_once(parts, 5);
            within = within && reads_within(parts, written) && reads_within(parts, read);
            grouped = grouped && parts.ungrouped() <= 15 + 4 * group + (group - 1);
          }
        }
      }
      INFO("sizes " << t.size << " and " << u.size);
      CHECK(once);
      CHECK(within);
      CHECK(grouped);
    }
  }
}

TEST_CASE("eight buffers: each element is visited once, and no byte outside is read") {
  const std::size_t size = 2;
  for (std::uintptr_t offset = 0; offset < 16; offset += 2) {
    const auto at = [&](std::uintptr_t k) { return extent{base + 4096 * k + (k * offset) % 16, size}; };
    for (std::size_t count = 0; count < 64; ++count) {
      const auto parts = device::cut(count, 8, at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
      CHECK(each_once(parts, 7));
      bool within = true;
      for (std::uintptr_t k = 0; k < 8; ++k) within = within && reads_within(parts, at(k));
      CHECK(within);
    }
  }
}

TEST_CASE("widest_access is the alignment of an address, up to 16") {
  for (std::uintptr_t offset = 0; offset < 64; ++offset) {
    const std::size_t width = device::widest_access(base + offset);
    CHECK(offset % width == 0);
    CHECK((width == 16 || offset % (2 * width) != 0));
    CHECK(device::shift_of(base + offset) == offset % 16);
  }
  CHECK(device::widest_access(0) == 16);
}

TEST_CASE("adjacent threads have adjacent groups") {
  const auto parts = device::cut(1000, 4, extent{base, 4});
  for (std::size_t thread = 0; thread + 1 < 8; ++thread) {
    std::vector<std::size_t> mine;
    std::vector<std::size_t> next;
    const auto nothing = [](std::size_t) {};
    device::visit(
        parts, thread, 8, [&](std::size_t first) { mine.push_back(first); }, nothing);
    device::visit(
        parts, thread + 1, 8, [&](std::size_t first) { next.push_back(first); }, nothing);
    for (std::size_t i = 0; i < next.size(); ++i) CHECK(next[i] == mine[i] + 4);
  }
}

TEST_CASE("the number of blocks grows with the bytes, up to the number of resident blocks") {
  for (int resident : {1, 108, 864, 1184}) {
    unsigned before = 0;
    for (std::size_t bytes = 0; bytes < std::size_t{1} << 40; bytes = bytes * 3 + 1) {
      const auto shape = device::shape_of(bytes, resident);
      CHECK(shape.blocks >= 1);
      CHECK(shape.blocks <= static_cast<unsigned>(resident));
      CHECK(shape.blocks >= before);
      before = shape.blocks;
    }
    CHECK(before == static_cast<unsigned>(resident));
  }
  CHECK(device::shape_of(0, 0).blocks == 1);
  CHECK(device::shape_of(8192, 132).blocks == 1);
  CHECK(device::shape_of(8193, 132).blocks == 2);
}
