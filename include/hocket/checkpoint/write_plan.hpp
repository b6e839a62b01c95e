// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which rank writes which elements of a checkpoint. Each element is written once; ranks that hold copies of a part
/// share it, so that all write about as many bytes.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/checkpoint/cover.hpp>
#include <hocket/checkpoint/rectangle.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

/// Elements `first` to `first + count`, excluded, in row-major order, of part number `part` of a rank's state.
struct written_range {
  std::size_t part = 0;
  std::uint64_t first = 0;
  std::uint64_t count = 0;

  bool operator==(const written_range&) const = default;
};

namespace detail {

/// A rank that holds a part, and the part's number in the rank's state.
struct holder {
  std::size_t rank;
  std::size_t part;
};

/// Ranks that hold the same rectangle of a tensor, in ascending order, and then those that hold it as a copy.
struct shared_part {
  const state_part* what;
  std::vector<holder> holders;
};

/// Returns an integer division of `bytes` bytes among ranks that already have `loads`, such that the loads become as
/// equal as possible: the smallest ones are raised to one level.
inline std::vector<std::uint64_t> shares_of(std::uint64_t bytes, const std::vector<std::uint64_t>& loads) {
  std::vector<std::size_t> order(loads.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return loads[a] < loads[b]; });
  std::size_t raised = 1;
  std::uint64_t room = 0;  // below the load of the first rank that is not raised
  for (; raised < order.size(); ++raised) {
    const std::uint64_t next = room + (loads[order[raised]] - loads[order[raised - 1]]) * raised;
    if (next >= bytes) break;
    room = next;
  }
  std::vector<std::uint64_t> shares(loads.size());
  const std::uint64_t level = loads[order[raised - 1]], above = bytes - room;
  for (std::size_t i = 0; i < raised; ++i)
    shares[order[i]] = level - loads[order[i]] + above / raised + (i < above % raised ? 1 : 0);
  return shares;
}

/// Groups the parts of all ranks by tensor and rectangle, and raises `invalid_argument` if they are not one state.
class part_census {
 public:
  explicit part_census(std::span<const std::vector<state_part>> of_ranks) {
    for (const bool are_copies : {false, true}) {
      for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
        for (std::size_t part = 0; part < of_ranks[rank].size(); ++part) {
          const state_part& each = of_ranks[rank][part];
          if (each.is_copy == are_copies) add(each, {rank, part});
        }
      }
    }
    for (const auto& [name, tensor] : tensors_) {
      require_own_name(name);
      require_each_element_once(name, tensor);
    }
  }

  /// One rank for each tensor without elements.
  std::vector<holder> holders_of_empty() const {
    std::vector<holder> result;
    for (const auto& [name, tensor] : tensors_) {
      if (tensor.parts.empty()) result.push_back(tensor.first_holder);
    }
    return result;
  }

  /// The shared parts, with fewer holders first: these can't give work to others.
  std::vector<shared_part> parts() const {
    std::vector<shared_part> result;
    for (const auto& [name, tensor] : tensors_) {
      for (const auto& [where, shared] : tensor.parts) result.push_back(shared);
    }
    std::stable_sort(result.begin(), result.end(),
                     [](const auto& a, const auto& b) { return a.holders.size() < b.holders.size(); });
    return result;
  }

 private:
  struct tensor_parts {
    const state_part* first;
    holder first_holder;
    std::map<rectangle, shared_part> parts;
  };

  [[noreturn]] static void refuse(const std::string& name, std::string reason) {
    raise(errc::invalid_argument, hocket::detail::concat({"tensor '", name, "': ", reason}));
  }

  void add(const state_part& part, holder who) {
    using hocket::detail::concat;
    const auto at = tensors_.try_emplace(part.name, tensor_parts{&part, who, {}}).first;
    const state_part& first = *at->second.first;
    if (first.type != part.type || first.extents != part.extents) {
      const auto described = [](const state_part& each) {
        return concat({name_of(each.type), " ", whole_of(each.extents).text()});
      };
      refuse(part.name, concat({"rank ", at->second.first_holder.rank, " has ", described(first), ", and rank ",
                                who.rank, " has ", described(part), ": type and extents must be equal on all ranks"}));
    }
    if (part.where.is_empty()) return;
    if (part.is_copy && !at->second.parts.contains(part.where)) return;
    shared_part& shared = at->second.parts.try_emplace(part.where, shared_part{&part, {}}).first->second;
    if (!shared.holders.empty() && shared.holders.back().rank == who.rank)
      refuse(part.name, concat({"rank ", who.rank, " has added elements ", part.where.text(), " twice"}));
    shared.holders.push_back(who);
  }

  /// Parts of tensor "w" have names such as "w[0:4]" in files.
  void require_own_name(const std::string& name) const {
    const std::size_t bracket = name.rfind('[');
    if (bracket == name.npos || !name.ends_with(']') || name.find(':', bracket) == name.npos) return;
    const std::string other = name.substr(0, bracket);
    if (!tensors_.contains(other)) return;
    refuse(name,
           hocket::detail::concat({"parts of tensor '", other, "' have such names in files: rename one of them"}));
  }

  static void require_each_element_once(const std::string& name, const tensor_parts& tensor) {
    using hocket::detail::concat;
    std::vector<const rectangle*> rectangles;
    std::vector<std::size_t> ranks;
    for (const auto& [where, shared] : tensor.parts) {
      rectangles.push_back(&where);
      ranks.push_back(shared.holders.front().rank);
    }
    const cover found = cover_of(rectangles);
    if (found.overlap) {
      const auto [a, b] = *found.overlap;
      refuse(name, concat({"elements ", rectangles[a]->text(), " of rank ", ranks[a], " and ", rectangles[b]->text(),
                           " of rank ", ranks[b], " have ", intersection(*rectangles[a], *rectangles[b]).text(),
                           " in common: rectangles of ranks must be equal or have no element in common"}));
    }
    const std::uint64_t all = volume_of(tensor.first->extents).value_or(0);
    if (found.elements == all) return;
    refuse(name,
           concat({"the ranks hold ", found.elements, " of its ", all, " elements: each element must be on a rank"}));
  }

  std::map<std::string, tensor_parts> tensors_;
};

}  // namespace detail

/// Returns for each rank the ranges that it writes; a tensor without elements is an empty range of one rank. `of_ranks`
/// are the parts of all ranks, without data. Raises `invalid_argument` if they are not one state: see `state`. Cost:
/// O(n log n) for n parts of tensors that are divided along one dimension.
inline std::vector<std::vector<written_range>> plan_writes(std::span<const std::vector<state_part>> of_ranks) {
  constexpr std::uint64_t least_bytes_to_divide = std::uint64_t{64} << 10;  // below, files and manifest would only grow
  std::vector<std::vector<written_range>> plan(of_ranks.size());
  std::vector<std::uint64_t> written(of_ranks.size());  // bytes
  const detail::part_census census(of_ranks);
  for (const detail::shared_part& each : census.parts()) {
    const std::uint64_t element = bytes_of(each.what->type), elements = each.what->where.volume();
    std::vector<std::uint64_t> loads;
    for (const detail::holder& who : each.holders) loads.push_back(written[who.rank]);
    std::vector<std::uint64_t> shares = detail::shares_of(elements * element, loads);
    if (elements * element < least_bytes_to_divide) {
      shares.assign(shares.size(), 0);
      shares[static_cast<std::size_t>(std::min_element(loads.begin(), loads.end()) - loads.begin())] =
          elements * element;
    }
    std::uint64_t begin = 0, bytes = 0;
    for (std::size_t i = 0; i < each.holders.size(); ++i) {
      bytes += shares[i];
      const std::uint64_t end = bytes / element;  // the shares are not multiples of the elements' size
      if (end > begin) plan[each.holders[i].rank].push_back({each.holders[i].part, begin, end - begin});
      written[each.holders[i].rank] += (end - begin) * element;
      begin = end;
    }
  }
  for (const detail::holder& who : census.holders_of_empty()) plan[who.rank].push_back({who.part, 0, 0});
  for (auto& each : plan)
    std::sort(each.begin(), each.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  return plan;
}

namespace detail {

inline void append_sizes(bootstrap::blob& to, const sizes_type& sizes) {
  for (const std::uint64_t each : sizes) bootstrap::detail::append_integer(to, each);
}

/// Encodes what other ranks have to know of a rank's parts.
inline bootstrap::blob encode_parts(const std::vector<state_part>& parts) {
  using namespace bootstrap::detail;
  bootstrap::blob result;
  for (const state_part& each : parts) {
    append_integer(result, static_cast<std::uint32_t>(each.name.size()));
    append_bytes(result, bootstrap::text_bytes(each.name));
    append_integer(result, static_cast<std::uint8_t>(each.type));
    append_integer(result, static_cast<std::uint8_t>(each.is_copy));
    append_integer(result, static_cast<std::uint8_t>(each.extents.size()));
    append_sizes(result, each.extents);
    append_sizes(result, each.where.begin);
    append_sizes(result, each.where.size);
  }
  return result;
}

inline std::vector<state_part> decode_parts(bootstrap::byte_view bytes) {
  std::vector<state_part> result;
  bootstrap::detail::blob_reader reader(bytes);
  while (reader.ok() && reader.left() > 0) {
    state_part each;
    each.name = bootstrap::blob_text(reader.bytes(reader.integer<std::uint32_t>()));
    each.type = static_cast<element_type>(reader.integer<std::uint8_t>());
    each.is_copy = reader.integer<std::uint8_t>() != 0;
    const auto dimensions = reader.integer<std::uint8_t>();
    for (sizes_type* const sizes : {&each.extents, &each.where.begin, &each.where.size}) {
      for (int d = 0; d < dimensions; ++d) sizes->push_back(reader.integer<std::uint64_t>());
    }
    result.push_back(std::move(each));
  }
  return result;
}

inline bootstrap::blob encode_ranges(const std::vector<written_range>& ranges) {
  bootstrap::blob result;
  for (const written_range& each : ranges) {
    bootstrap::detail::append_integer(result, std::uint64_t{each.part});
    bootstrap::detail::append_integer(result, each.first);
    bootstrap::detail::append_integer(result, each.count);
  }
  return result;
}

inline std::vector<written_range> decode_ranges(bootstrap::byte_view bytes) {
  std::vector<written_range> result;
  bootstrap::detail::blob_reader reader(bytes);
  while (reader.ok() && reader.left() > 0) {
    written_range each;
    each.part = reader.integer<std::uint64_t>();
    each.first = reader.integer<std::uint64_t>();
    each.count = reader.integer<std::uint64_t>();
    result.push_back(each);
  }
  return result;
}

}  // namespace detail

}  // namespace checkpoint
HOCKET_END_NAMESPACE
