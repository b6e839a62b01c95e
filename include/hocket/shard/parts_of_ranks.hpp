// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The parts of a tensor that the ranks of a mesh have in one placement and need in another, and the groups of ranks
/// that can supply them. The search for plans of redistributions uses these.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/placement.hpp>

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A rank's part: in each dimension the elements from `begin` to `end`. Plain arrays, because the compiler counts every
/// function call that it evaluates at compile time.
template <std::size_t Rank>
struct part_range {
  std::size_t begin[Rank + 1]{};
  std::size_t end[Rank + 1]{};

  constexpr std::size_t volume() const noexcept {
    std::size_t product = 1;
    for (std::size_t d = 0; d < Rank; ++d) product *= end[d] - begin[d];
    return product;
  }
};

/// Placements along all axes, and the parts of the ranks in them.
template <std::size_t Rank, std::size_t Axes>
struct placed_parts {
  std::array<placement, Axes> at{};
  part_range<Rank> first{};             ///< the part of the first rank, which is the largest
  std::vector<part_range<Rank>> parts;  ///< of all ranks; empty until `compute_parts`
};

/// Compares the parts of the ranks of a mesh in two placements.
template <std::size_t Rank, std::size_t Axes>
class parts_of_ranks {
 public:
  using state = std::array<placement, Axes>;
  using part = part_range<Rank>;
  using placed = placed_parts<Rank, Axes>;
  static constexpr axis_set every_axis = (1U << Axes) - 1;

  constexpr parts_of_ranks(const std::array<std::size_t, Rank>& sizes, const std::array<int, Axes>& mesh_extents)
      : sizes_(sizes), mesh_extents_(mesh_extents) {
    for (axis_set set = 0; set <= every_axis; ++set) {
      for_all_along(mesh_extents_, coordinates{}, set, [&](const coordinates& at) {
        offsets_[set].push_back(rank_of(at, set));
        return true;
      });
    }
  }

  /// Computes the part of the first rank.
  constexpr void compute_first_part(placed& seen) {
    work_ += Axes * Rank;
    for (std::size_t d = 0; d < Rank; ++d) seen.first.end[d] = sizes_[d];
    for (std::size_t a = 0; a < Axes; ++a) {
      if (!seen.at[a].sharded()) continue;
      const auto ranks = static_cast<std::size_t>(mesh_extents_[a]);
      std::size_t& size = seen.first.end[seen.at[a].dimension];
      size = chunk(size, ranks, 0).size;
    }
  }

  /// Computes the parts of all ranks, which the functions below read.
  constexpr void compute_parts(placed& seen) {
    if (seen.parts.empty()) seen.parts = parts_of(seen.at);
  }

  constexpr std::size_t volume_of_all() const {
    std::size_t volume = 1;
    for (const std::size_t each : sizes_) volume *= each;
    return volume;
  }

  constexpr std::size_t ranks_along(axis_set set) const { return offsets_[set].size(); }

  /// Approximate number of ranges that were computed and compared: a measure of time.
  constexpr std::size_t work() const noexcept { return work_; }
  constexpr void add_work(std::size_t more) noexcept { work_ += more; }

  /// Returns the number of elements that two parts have in common.
  static constexpr std::size_t common(const part& a, const part& b) {
    std::size_t volume = 1;
    for (std::size_t d = 0; d < Rank; ++d) {
      const std::size_t begin = a.begin[d] > b.begin[d] ? a.begin[d] : b.begin[d];
      const std::size_t end = a.end[d] < b.end[d] ? a.end[d] : b.end[d];
      if (end <= begin) return 0;
      volume *= end - begin;
    }
    return volume;
  }

  /// Returns the axes of `along` without which the ranks of a group lack elements that one of them needs.
  constexpr axis_set needed_axes(const placed& from, const placed& to, axis_set along) {
    axis_set needed = 0;
    for (std::size_t a = 0; a < Axes; ++a) {
      const axis_set axis = 1U << a;
      if ((along & axis) != 0 && from.at[a].sharded() && !supplies(from, to, along & ~axis)) needed |= axis;
    }
    return needed;
  }

  /// Returns whether the ranks along `group` together have what each of them needs. Of several copies, a rank uses the
  /// one with its own coordinates along the axes of the copies. Checks each dimension: parts are products of ranges.
  constexpr bool supplies(const placed& from, const placed& to, axis_set group) {
    std::array<axis_set, Rank> cutting{};
    for (std::size_t a = 0; a < Axes; ++a) {
      if ((group >> a & 1U) != 0 && from.at[a].sharded()) {
        cutting[static_cast<std::size_t>(from.at[a].dimension)] |= 1U << a;
      }
    }
    for (std::size_t rank = 0; rank < to.parts.size(); ++rank) {
      const part& needed = to.parts[rank];
      work_ += Rank;
      if (needed.volume() == 0) continue;
      for (std::size_t d = 0; d < Rank; ++d) {
        work_ += offsets_[cutting[d]].size();
        const part* const members = from.parts.data() + first_along(cutting[d], rank);
        std::size_t lacking = needed.end[d] - needed.begin[d];
        for (const std::size_t offset : offsets_[cutting[d]]) {
          const part& had = members[offset];
          const std::size_t begin = had.begin[d] > needed.begin[d] ? had.begin[d] : needed.begin[d];
          const std::size_t end = had.end[d] < needed.end[d] ? had.end[d] : needed.end[d];
          if (end > begin) lacking -= end - begin;
        }
        if (lacking > 0) return false;
      }
    }
    return true;
  }

  /// Returns whether, in every group along `along`, the parts after a move divide the part before it.
  constexpr bool shares_out(const placed& from, const placed& to, axis_set along) {
    work_ += from.parts.size() * offsets_[along].size() * Rank;
    for (std::size_t rank = 0; rank < from.parts.size(); ++rank) {
      const part& whole = from.parts[rank];
      const std::size_t first = first_along(along, rank);
      std::size_t found = 0;
      for (const std::size_t offset : offsets_[along]) {
        const part& slice = to.parts[first + offset];
        if (common(slice, whole) != slice.volume()) return false;
        found += slice.volume();
      }
      if (found != whole.volume()) return false;
    }
    return true;
  }

  /// Returns the elements that the ranks of a group together lack of their new parts, for the group that lacks most.
  constexpr std::size_t exchanged(const placed& from, const placed& to, axis_set along) {
    work_ += from.parts.size() * Rank;
    std::size_t most = 0;
    for (const std::size_t group : offsets_[every_axis & ~along]) {
      std::size_t total = 0;
      const part* const before = from.parts.data() + group;
      const part* const after = to.parts.data() + group;
      for (const std::size_t member : offsets_[along]) {
        total += after[member].volume() - common(before[member], after[member]);
      }
      if (total > most) most = total;
    }
    return most;
  }

  /// Returns the sum over the ranks of the elements of their new parts that no rank along `together` has.
  constexpr std::size_t missing_elements(const placed& from, const placed& to, axis_set together) {
    work_ += from.parts.size() * offsets_[together].size() * Rank;
    std::size_t missing = 0;
    for (std::size_t rank = 0; rank < to.parts.size(); ++rank) {
      std::size_t had = 0;
      const part* const members = from.parts.data() + first_along(together, rank);
      for (const std::size_t offset : offsets_[together]) had += common(members[offset], to.parts[rank]);
      const std::size_t needed = to.parts[rank].volume();
      if (needed > had) missing += needed - had;
    }
    return missing;
  }

  /// Returns the largest number of elements that a rank lacks of its new part.
  constexpr std::size_t most_missing_elements(const placed& from, const placed& to) {
    work_ += from.parts.size() * Rank;
    std::size_t most = 0;
    for (std::size_t rank = 0; rank < to.parts.size(); ++rank) {
      const std::size_t lacking = to.parts[rank].volume() - common(from.parts[rank], to.parts[rank]);
      if (lacking > most) most = lacking;
    }
    return most;
  }

 private:
  using coordinates = std::array<int, Axes>;

  /// Returns the rank at the coordinates `at` along the axes of `set`, and 0 along the others.
  constexpr std::size_t rank_of(const coordinates& at, axis_set set) const {
    std::size_t rank = 0;
    for (std::size_t a = 0; a < Axes; ++a) {
      rank = rank * static_cast<std::size_t>(mesh_extents_[a]) +
             ((set >> a & 1U) != 0 ? static_cast<std::size_t>(at[a]) : 0U);
    }
    return rank;
  }

  /// Returns the first of the ranks that differ from `rank` only along `set`.
  constexpr std::size_t first_along(axis_set set, std::size_t rank) const {
    std::size_t first = rank;
    std::size_t stride = 1;
    for (std::size_t a = Axes; a-- > 0;) {
      const auto extent = static_cast<std::size_t>(mesh_extents_[a]);
      if ((set >> a & 1U) != 0) first -= rank / stride % extent * stride;
      stride *= extent;
    }
    return first;
  }

  /// Returns the parts of all ranks: cuts the whole along one axis after the other.
  constexpr std::vector<part> parts_of(const state& at) {
    std::vector<part> parts(1);
    for (std::size_t d = 0; d < Rank; ++d) parts[0].end[d] = sizes_[d];
    for (std::size_t a = 0; a < Axes; ++a) {
      const std::size_t ranks = static_cast<std::size_t>(mesh_extents_[a]);
      std::vector<part> cut(parts.size() * ranks);
      work_ += cut.size() * Rank;
      part* next = cut.data();
      for (const part& each : parts) {
        for (std::size_t index = 0; index < ranks; ++index, ++next) {
          *next = each;
          if (!at[a].sharded()) continue;
          const auto d = static_cast<std::size_t>(at[a].dimension);
          const plan::extent own = chunk(each.end[d] - each.begin[d], ranks, index);
          next->begin[d] = each.begin[d] + own.begin;
          next->end[d] = next->begin[d] + own.size;
        }
      }
      parts = std::move(cut);
    }
    return parts;
  }

  std::array<std::size_t, Rank> sizes_;
  std::array<int, Axes> mesh_extents_;
  /// For each set of axes, the ranks at all coordinates along these, and 0 along the others.
  std::array<std::vector<std::size_t>, std::size_t{1} << Axes> offsets_{};
  std::size_t work_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
