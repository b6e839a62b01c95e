// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sizes of tensors, known at compile time or not, and the part of a tensor that each rank has. Every rank computes
/// every rank's part from the extents and the coordinates alone. So uneven slices and ranks without elements need no
/// padding and no communication.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/shard/extents_diagnostics.hpp>
#include <hocket/shard/placement.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <source_location>
#include <span>

HOCKET_BEGIN_NAMESPACE

/// Stands for an extent that is passed at run time, when a tensor is made.
inline constexpr std::size_t dynamic = static_cast<std::size_t>(-1);

/// The extents of a tensor: `extents<dynamic, 512>` is a matrix of any number of rows and of 512 columns.
template <std::size_t... Sizes>
struct extents {
  static constexpr std::size_t rank = sizeof...(Sizes);  ///< number of dimensions
  /// Number of dimensions whose extent is `dynamic`.
  static constexpr std::size_t dynamic_rank = ((Sizes == dynamic ? 1U : 0U) + ... + 0U);
  static constexpr std::array<std::size_t, sizeof...(Sizes)> sizes{Sizes...};  ///< all extents
};

namespace detail {

/// Returns whether two tensors can have the same extents: compares only extents that are in both types.
template <class A, class B>
constexpr bool may_have_same_extents() noexcept {
  if (A::rank != B::rank) return false;
  for (std::size_t d = 0; d < std::min(A::rank, B::rank); ++d) {
    const std::size_t a = A::sizes[d];
    const std::size_t b = B::sizes[d];
    if (a != dynamic && b != dynamic && a != b) return false;
  }
  return true;
}

}  // namespace detail

/// The `Count` extents that a tensor's type leaves open, written as `{64, 1000}`.
template <std::size_t Count>
class given_extents {
 public:
  /// From a list of numbers.
  template <detail::extent_like... Given>
    requires(sizeof...(Given) == Count)
  constexpr given_extents(const Given&... given) noexcept  // NOLINT: implicit, so that a list is one
      : sizes_{static_cast<std::size_t>(given)...} {}
  template <std::size_t Given>
    requires(Given == Count)
  constexpr given_extents(const std::array<std::size_t, Given>& given) noexcept : sizes_(given) {}  // NOLINT: implicit
  /// Throws `invalid_argument` unless `given` has `Count` extents.
  given_extents(std::span<const std::size_t> given,  // NOLINT: implicit
                const std::source_location& site = std::source_location::current()) {
    if (given.size() != Count) {
      raise(errc::invalid_argument,
            detail::concat({given.size(), " extents are given, and the tensor's type leaves ", Count,
                            " open: pass one for each dynamic extent"}),
            {.operation = "tensor", .site = site});
    }
    std::copy(given.begin(), given.end(), sizes_.begin());
  }

  // Deleted: the compiler prints the reason as a template argument.
  template <detail::extent_like... Given, auto Why = detail::why_not_as_many<sizeof...(Given), Count>()>
  given_extents(const Given&...) = delete;  // NOLINT: implicit, as the others
  template <class... Given, auto Why = detail::why_no_whole_numbers<Given...>()>
  given_extents(const Given&...) = delete;  // NOLINT: implicit, as the others
  template <std::size_t Given, auto Why = detail::why_not_as_many<Given, Count>()>
  given_extents(const std::array<std::size_t, Given>&) = delete;  // NOLINT: implicit, as the others

  constexpr const std::array<std::size_t, Count>& sizes() const noexcept { return sizes_; }  ///< in order

 private:
  std::array<std::size_t, Count> sizes_{};
};

/// Returns chunk `index` of n elements in `parts` chunks of ceil(n / parts) elements; the last ones have fewer or none.
constexpr plan::extent chunk(std::size_t n, std::size_t parts, std::size_t index) noexcept {
  const std::size_t full = (n + parts - 1) / parts;
  const std::size_t begin = std::min(n, full * index);
  return {begin, std::min(full, n - begin)};
}

/// A block of a tensor of `Rank` dimensions: in dimension d the elements [begin[d], begin[d] + size[d]).
template <std::size_t Rank>
struct box {
  std::array<std::size_t, Rank> begin{};  ///< index of the first element, by dimension
  std::array<std::size_t, Rank> size{};   ///< number of elements, by dimension

  /// Returns the number of elements.
  constexpr std::size_t volume() const noexcept {
    std::size_t product = 1;
    for (const std::size_t each : size) product *= each;
    return product;
  }

  friend constexpr bool operator==(const box&, const box&) = default;
};

/// Returns the common elements of two boxes; a box of volume 0 if there are none.
template <std::size_t Rank>
constexpr box<Rank> intersection(const box<Rank>& a, const box<Rank>& b) noexcept {
  box<Rank> common;
  for (std::size_t d = 0; d < Rank; ++d) {
    common.begin[d] = std::max(a.begin[d], b.begin[d]);
    const std::size_t end = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]);
    common.size[d] = end > common.begin[d] ? end - common.begin[d] : 0;
  }
  return common;
}

/// Returns the part of a tensor on the rank at `coordinates` of a mesh. `placed` has one placement for each axis.
template <std::size_t Rank>
constexpr box<Rank> part_of(const std::array<std::size_t, Rank>& sizes, std::span<const placement> placed,
                            std::span<const int> mesh_extents, std::span<const int> coordinates) noexcept {
  box<Rank> part{{}, sizes};
  for (std::size_t axis = 0; axis < placed.size(); ++axis) {
    if (!placed[axis].sharded()) continue;
    const auto d = static_cast<std::size_t>(placed[axis].dimension);
    const plan::extent own =
        chunk(part.size[d], static_cast<std::size_t>(mesh_extents[axis]), static_cast<std::size_t>(coordinates[axis]));
    part.begin[d] += own.begin;
    part.size[d] = own.size;
  }
  return part;
}

HOCKET_END_NAMESPACE
