// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Parts of tensors whose number of dimensions is known at run time. Each rank holds a hyper-rectangle of a tensor, in
/// row-major order; loading a checkpoint on another mesh is the intersection of rectangles.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// Numbers of elements along each dimension; a scalar has none, and is one element.
using sizes_type = std::vector<std::uint64_t>;

/// Returns the number of elements; nothing if it does not fit into 64 bits.
inline std::optional<std::uint64_t> volume_of(const sizes_type& sizes) noexcept {
  std::uint64_t volume = 1;
  bool is_empty = false, overflows = false;
  for (const std::uint64_t each : sizes) {
    is_empty = is_empty || each == 0;
    overflows = overflows || (each != 0 && volume > std::numeric_limits<std::uint64_t>::max() / each);
    if (each != 0 && !overflows) volume *= each;
  }
  if (is_empty) return 0;
  return overflows ? std::nullopt : std::optional(volume);
}

/// Part of a tensor: the elements from `begin` on, `size` of them along each dimension.
struct rectangle {
  sizes_type begin;
  sizes_type size;

  bool operator==(const rectangle&) const = default;
  auto operator<=>(const rectangle&) const = default;

  std::uint64_t volume() const noexcept { return volume_of(size).value_or(0); }
  bool is_empty() const noexcept { return volume() == 0; }
  /// Returns "[0:4, 8:16]"; "[]" for a scalar.
  std::string text() const {
    std::string result = "[";
    for (std::size_t d = 0; d < size.size(); ++d)
      hocket::detail::append(result, {d == 0 ? "" : ", ", begin[d], ":", begin[d] + size[d]});
    return result += ']';
  }
};

/// The rectangle that has all elements of a tensor.
inline rectangle whole_of(const sizes_type& extents) { return {sizes_type(extents.size()), extents}; }

/// Returns the elements that both have; empty if there are none. Both must have the same number of dimensions.
inline rectangle intersection(const rectangle& a, const rectangle& b) {
  rectangle result = a;
  for (std::size_t d = 0; d < a.size.size(); ++d) {
    const std::uint64_t begin = std::max(a.begin[d], b.begin[d]);
    const std::uint64_t end = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]);
    result.begin[d] = begin;
    result.size[d] = end > begin ? end - begin : 0;
  }
  return result;
}

/// Returns whether `outer` has all elements of `inner`.
inline bool includes(const rectangle& outer, const rectangle& inner) {
  return inner.is_empty() || intersection(outer, inner) == inner;
}

namespace detail {

/// Number of elements of `whole` before the element at `at`, in row-major order.
inline std::uint64_t offset_in(const rectangle& whole, const sizes_type& at) noexcept {
  std::uint64_t result = 0;
  for (std::size_t d = 0; d < at.size(); ++d) result = result * whole.size[d] + (at[d] - whole.begin[d]);
  return result;
}

/// Number of inner dimensions in which `region` covers `whole`, so that its elements are contiguous there.
inline std::size_t covered_dimensions(const rectangle& region, const rectangle& whole) noexcept {
  std::size_t count = 0;
  for (std::size_t d = region.size.size(); d-- > 0 && region.size[d] == whole.size[d];) ++count;
  return count;
}

/// Advances `at` to the next element of `region` whose coordinates from `outer` on are those of the begin. Returns
/// false after the last.
inline bool advance(sizes_type& at, const rectangle& region, std::size_t outer) noexcept {
  while (outer > 0) {
    --outer;
    if (++at[outer] < region.begin[outer] + region.size[outer]) return true;
    at[outer] = region.begin[outer];
  }
  return false;
}

}  // namespace detail

/// Calls `visit(begin of the run in the tensor, elements)` for each row of `region`, in row-major order: the longest
/// runs that are contiguous in both `a` and `b`, which include `region`.
template <class Visit>
void for_each_run(const rectangle& region, const rectangle& a, const rectangle& b, Visit visit) {
  if (region.is_empty()) return;
  const std::size_t dimensions = region.size.size();
  const std::size_t covered = std::min(detail::covered_dimensions(region, a), detail::covered_dimensions(region, b));
  const std::size_t outer = dimensions - std::min(dimensions, covered + 1);  // a run may be a part of one more
  std::uint64_t run = 1;
  for (std::size_t d = outer; d < dimensions; ++d) run *= region.size[d];
  sizes_type at = region.begin;
  do visit(std::as_const(at), run);
  while (detail::advance(at, region, outer));
}

/// Copies the elements of `region` from an array that holds `from_part` to one that holds `to_part`, both row-major.
inline void copy_region(const rectangle& region, std::size_t element_bytes, std::byte* to, const rectangle& to_part,
                        const std::byte* from, const rectangle& from_part) {
  for_each_run(region, to_part, from_part, [&](const sizes_type& at, std::uint64_t run) {
    std::memcpy(to + detail::offset_in(to_part, at) * element_bytes,
                from + detail::offset_in(from_part, at) * element_bytes, run * element_bytes);
  });
}

namespace detail {

/// Appends the rectangles that are the elements `first` to `last`, excluded, of the rectangle `whole`, in row-major
/// order; `d` outer dimensions of `whole` have size 1.
inline void append_range(const rectangle& whole, std::size_t d, std::uint64_t first, std::uint64_t last,
                         std::vector<rectangle>& result) {
  if (first >= last) return;
  while (d < whole.size.size() && whole.size[d] == 1) ++d;
  if (d == whole.size.size()) return result.push_back(whole);
  std::uint64_t row = 1;
  for (std::size_t inner = d + 1; inner < whole.size.size(); ++inner) row *= whole.size[inner];
  const auto rows = [&](std::uint64_t begin, std::uint64_t count) {
    rectangle part = whole;
    part.begin[d] += begin;
    part.size[d] = count;
    return part;
  };
  const std::uint64_t row_of_first = first / row, row_of_last = last / row;
  if (row_of_first == row_of_last) return append_range(rows(row_of_first, 1), d + 1, first % row, last % row, result);
  std::uint64_t begin = row_of_first;
  if (first % row != 0) append_range(rows(begin++, 1), d + 1, first % row, row, result);
  if (begin < row_of_last) result.push_back(rows(begin, row_of_last - begin));
  append_range(rows(row_of_last, 1), d + 1, 0, last % row, result);
}

}  // namespace detail

/// Returns the elements `first` to `first + count`, excluded, of `whole`, in row-major order, as at most 2 * d - 1
/// adjacent rectangles for d dimensions.
inline std::vector<rectangle> rectangles_of_range(const rectangle& whole, std::uint64_t first, std::uint64_t count) {
  std::vector<rectangle> result;
  detail::append_range(whole, 0, first, first + count, result);
  return result;
}

}  // namespace checkpoint
HOCKET_END_NAMESPACE
