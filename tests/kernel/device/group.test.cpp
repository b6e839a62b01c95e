// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups at the edges of a buffer are read by packs within the buffer, or by elements. A read outside of the test's
// page crashes.
#include "support/catch.hpp"

#include <hocket/kernel/device/group.hpp>
#include <hocket/scalar/scalar.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <sys/mman.h>

namespace device = hocket::kernel::device;

namespace {

constexpr std::size_t page = 4096;

/// A page of bytes that differ from their neighbours, between two inaccessible pages.
class lonely_page {
 public:
  lonely_page() : all_(::mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {
    REQUIRE(all_ != MAP_FAILED);
    for (std::size_t i = 0; i < page; ++i) begin()[i] = static_cast<unsigned char>(i % 251);
    REQUIRE(::mprotect(all_, page, PROT_NONE) == 0);
    REQUIRE(::mprotect(begin() + page, page, PROT_NONE) == 0);
  }
  lonely_page(const lonely_page&) = delete;
  lonely_page& operator=(const lonely_page&) = delete;
  ~lonely_page() { ::munmap(all_, 3 * page); }

  unsigned char* begin() const { return static_cast<unsigned char*>(all_) + page; }

 private:
  void* all_;
};

template <class T, std::size_t Count>
bool holds(const device::group<T, Count>& found, const T* from, std::size_t elements) {
  for (std::size_t i = 0; i < Count; ++i) {
    const T got = found.get(i), zero{};
    if (std::memcmp(&got, i < elements ? from + i : &zero, sizeof(T)) != 0) return false;
  }
  return true;
}

/// Reads a buffer of `count` elements from each element.
template <class T, std::size_t Count>
void check_buffer(const T* buffer, std::size_t count) {
  for (std::size_t first = 0; first < count; ++first) {
    const std::size_t left = count - first;
    const bool right = holds(device::load_group_within<Count>(buffer, count, first), buffer + first, left);
    if (!right) FAIL("of " << count << " elements of " << sizeof(T) << " bytes, from element " << first);
    // As `cut()` chooses: the whole group begins at a pack and lies within the buffer.
    const auto begin = reinterpret_cast<std::uintptr_t>(buffer + first);
    if (left >= Count && begin % 16 == 0)
      CHECK(holds(device::load_group<Count>(buffer + first), buffer + first, Count));
  }
}

template <class T>
void check_edges() {
  constexpr std::size_t few = 32 / sizeof(T);
  const lonely_page memory;
  for (std::size_t count = 1; count <= 4 * few; ++count) {
    for (std::size_t shift = 0; shift < 16; shift += sizeof(T)) {
      // At the beginning and the end of the page, and up to the length of a pack away from them.
      const auto* const low = reinterpret_cast<const T*>(memory.begin() + shift);
      const auto* const high = reinterpret_cast<const T*>(memory.begin() + page - shift) - count;
      check_buffer<T, few>(low, count);
      check_buffer<T, few>(high, count);
    }
  }
}

}  // namespace

TEST_CASE("groups at the edges of a buffer are read from within the buffer") {
  check_edges<std::uint8_t>();
  check_edges<hocket::bfloat16>();
  check_edges<float>();
  check_edges<double>();
}

TEST_CASE("packs_lie_within is correct for each address and length") {
  std::size_t wrong = 0;
  for (const std::size_t size : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}, std::size_t{12}}) {
    for (std::uintptr_t address = 4096; address < 4112; ++address) {
      for (std::size_t count = 1; count < 40; ++count) {
        for (std::size_t first = 0; first < count; ++first) {
          for (std::size_t elements = 1; elements <= 20; ++elements) {
            const std::uintptr_t begin = (address + first * size) / 16 * 16;
            const std::uintptr_t end = (address + (first + elements) * size + 15) / 16 * 16;
            const bool within = begin >= address && end <= address + count * size;
            wrong += device::packs_lie_within({address, size}, count, first, elements) == within ? 0U : 1U;
          }
        }
      }
    }
  }
  CHECK(wrong == 0);
}
