// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Hyper-rectangles of tensors, against a list of all elements.
#include <hocket/checkpoint/rectangle.hpp>
#include <hocket/checkpoint/state.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace {

using namespace hocket::checkpoint;

/// Calls `visit(coordinates)` for each element of `part`, in row-major order.
template <class Visit>
void for_each_element(const rectangle& part, Visit visit) {
  if (part.is_empty()) return;
  sizes_type at = part.begin;
  do visit(at);
  while (detail::advance(at, part, at.size()));
}

/// Offsets in `whole` of the elements of `part`.
std::vector<std::uint64_t> offsets_of(const rectangle& part, const rectangle& whole) {
  std::vector<std::uint64_t> result;
  for_each_element(part, [&](const sizes_type& at) { result.push_back(detail::offset_in(whole, at)); });
  return result;
}

rectangle random_part(const sizes_type& extents, std::mt19937& random) {
  rectangle part = whole_of(extents);
  for (std::size_t d = 0; d < extents.size(); ++d) {
    part.begin[d] = random() % (extents[d] + 1);
    part.size[d] = random() % (extents[d] - part.begin[d] + 1);
  }
  return part;
}

const std::vector<sizes_type> shapes{{}, {1}, {7}, {1, 1}, {3, 5}, {5, 1, 4}, {1, 6, 1}, {2, 3, 4, 3}, {0}, {4, 0, 2}};

}  // namespace

TEST_CASE("a range of elements is a few rectangles that have each element once, in order") {
  for (const sizes_type& extents : shapes) {
    rectangle whole = whole_of(extents);
    for (std::uint64_t& each : whole.begin) each = 10;
    const std::uint64_t volume = whole.volume();
    for (std::uint64_t first = 0; first <= volume; ++first) {
      for (std::uint64_t count = 0; first + count <= volume; ++count) {
        const auto parts = rectangles_of_range(whole, first, count);
        std::vector<std::uint64_t> found, expected(count);
        for (const rectangle& each : parts) {
          const auto offsets = offsets_of(each, whole);
          found.insert(found.end(), offsets.begin(), offsets.end());
        }
        std::iota(expected.begin(), expected.end(), first);
        if (found != expected) FAIL("elements " << first << " to " << first + count << " of " << whole.text());
        CHECK(parts.size() <= std::max<std::size_t>(1, 2 * extents.size() - 1) * (count == 0 ? 0 : 1));
      }
    }
  }
}

TEST_CASE("the intersection has the elements that both rectangles have") {
  std::mt19937 random(1);
  for (const sizes_type& extents : shapes) {
    const rectangle whole = whole_of(extents);
    for (int round = 0; round < 100; ++round) {
      const rectangle a = random_part(extents, random), b = random_part(extents, random);
      const auto of_a = offsets_of(a, whole), of_b = offsets_of(b, whole);
      std::vector<std::uint64_t> common;
      std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(common));
      CHECK(offsets_of(intersection(a, b), whole) == common);
      CHECK(includes(a, b) == (common.size() == of_b.size()));
    }
  }
}

TEST_CASE("regions are copied between the arrays of two parts, in runs as long as both permit") {
  std::mt19937 random(2);
  for (const sizes_type& extents : shapes) {
    const rectangle whole = whole_of(extents);
    for (int round = 0; round < 100; ++round) {
      const rectangle from_part = random_part(extents, random), to_part = random_part(extents, random);
      const rectangle region = intersection(from_part, to_part);
      std::vector<std::uint32_t> from, to(to_part.volume(), 99), expected;
      for (const std::uint64_t each : offsets_of(from_part, whole)) from.push_back(static_cast<std::uint32_t>(each));
      for_each_element(to_part, [&](const sizes_type& at) {
        const bool is_copied = includes(region, {at, sizes_type(at.size(), 1)});
        expected.push_back(is_copied ? static_cast<std::uint32_t>(detail::offset_in(whole, at)) : 99);
      });
      copy_region(region, sizeof from[0], reinterpret_cast<std::byte*>(to.data()), to_part,
                  reinterpret_cast<const std::byte*>(from.data()), from_part);
      CHECK(to == expected);
      int runs = 0;
      for_each_run(region, region, region, [&](const sizes_type&, std::uint64_t run) {
        ++runs;
        CHECK(run == region.volume());
      });
      CHECK(runs == (region.is_empty() ? 0 : 1));
    }
  }
}

TEST_CASE("volumes that do not fit into 64 bits are noticed") {
  CHECK(volume_of({}) == 1U);
  CHECK(volume_of({0, ~std::uint64_t{0}, 2}) == 0U);
  CHECK(volume_of({std::uint64_t{1} << 32, (std::uint64_t{1} << 32) - 1}) ==
        ~std::uint64_t{0} - ((std::uint64_t{1} << 32) - 1));
  CHECK_FALSE(volume_of({std::uint64_t{1} << 32, std::uint64_t{1} << 32}));
}

TEST_CASE("a slice of an array is its rectangle of one dimension, and must be within it") {
  std::vector<float> elements(5);
  for (std::uint64_t first = 0; first <= 8; ++first) {
    INFO("from element " << first << " of 10");
    state slice, by_hand;
    if (first + elements.size() > 10) {
      CHECK_THROWS_WITH(slice.add_slice("w", 10, first, elements), Catch::Contains("are not within the extent 10"));
      continue;
    }
    slice.add_slice("w", 10, first, elements);
    by_hand.add("w", {10}, {{first}, {5}}, elements);
    CHECK(slice.parts().at(0).extents == by_hand.parts().at(0).extents);
    CHECK(slice.parts().at(0).where == by_hand.parts().at(0).where);
    CHECK(slice.parts().at(0).data == by_hand.parts().at(0).data);
  }
}
