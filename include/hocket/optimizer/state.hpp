// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// State of training for checkpoints, which another number of ranks can restore: parameters, wider copies of them, and
/// the optimizer's states, each sharded in a different way. Here all are lists of *pieces*: elements `first` … of a
/// named parameter, independent of buckets, ranks and ZeRO stages. So another number of ranks at another stage can
/// restore them. The parameters must have the same sizes: each is this rank's part of a tensor.
///
/// @code
/// const auto now = optimizer.state();  // over all ranks, each element is in one piece
/// write(now.steps);
/// for (const auto& p : now.pieces) write(p.array, p.parameter, p.elements, p.first, p.values);
/// ...
/// optimizer.restore({steps, pieces_of_all_files});  // copies this rank's elements; fails if one of them is missing
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Consecutive elements of one parameter, or of one of its states.
template <class F>
struct state_piece {
  std::string array;          ///< name: "parameter", "master", or that of a state of the rule: "first moment"
  std::string parameter;      ///< name in the layout
  std::size_t elements = 0;   ///< number of elements of the whole parameter in the layout
  std::size_t first = 0;      ///< index of the piece's first element in the parameter
  std::span<const F> values;  ///< elements of the piece
};

/// State of an optimizer: the number of steps, which is equal on all ranks, and pieces of its arrays.
template <class F>
struct optimizer_state {
  std::uint64_t steps = 0;             ///< number of steps taken
  std::vector<state_piece<F>> pieces;  ///< pieces to save or to restore
};

namespace detail {

/// Adds the range `saved` of bucket `b` to `pieces`. `memory` holds exactly the range `stored`, which includes `saved`.
template <class F>
void add_pieces(std::vector<state_piece<F>>& pieces, const std::string& array, const parameter_layout& layout,
                std::size_t b, const element_range& saved, const element_range& stored, std::span<const F> memory) {
  layout.visit_parts(b, saved, [&](std::size_t i, const element_range& part) {
    pieces.push_back({array, layout[i].name, layout[i].elements, part.first - layout.of(i).first,
                      memory.subspan(part.first - stored.first, part.size)});
  });
}

/// Calls `visit(array, parameter, first, values)` for each parameter in the range `stored` of bucket `b`, which `memory`
/// holds.
template <class F, class Visit>
void visit_stored_parts(const std::string& array, const parameter_layout& layout, std::size_t b,
                        const element_range& stored, std::span<F> memory, Visit& visit) {
  layout.visit_parts(b, stored, [&](std::size_t i, const element_range& part) {
    visit(array, layout[i], part.first - layout.of(i).first, memory.subspan(part.first - stored.first, part.size));
  });
}

/// Finds elements in pieces of any distribution.
template <class F>
class state_reader {
 public:
  explicit state_reader(std::span<const state_piece<F>> pieces) {
    for (const auto& each : pieces) found_[{each.array, each.parameter}].push_back(&each);
    for (auto& [name, all] : found_) {
      std::stable_sort(all.begin(), all.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
    }
  }

  /// Returns why the elements `wanted` of parameter `of` can't be read from `array`; empty if they can.
  std::string why_incomplete(const std::string& array, const parameter& of, const element_range& wanted) const {
    const std::string name =
        array == "parameter" ? concat({"parameter '", of.name, "'"}) : concat({"the ", array, " of '", of.name, "'"});
    const auto all = found_.find({array, of.name});
    if (all == found_.end()) return concat({"there is no piece of ", name, " in the state to restore"});
    std::size_t at = wanted.first;  // all wanted elements before it are available
    for (const auto* each : all->second) {
      if (each->elements != of.elements) {
        return concat({name, " has ", each->elements, " elements in the saved state, but ", of.elements,
                       " in this layout: restore the state of a model whose tensors have the same shapes and are "
                       "sharded in the same way"});
      }
      if (each->first + each->values.size() > of.elements || each->first > of.elements) {
        return concat({"a piece of ", name, " begins at element ", each->first, " and has ", each->values.size(),
                       " elements, but ", name, " has only ", of.elements});
      }
      if (each->first > at) break;
      at = std::max(at, each->first + each->values.size());
    }
    if (at >= wanted.end()) return "";
    return concat({"element ", at, " of ", name,
                   " is in no piece of the state to restore, but this rank stores elements ", wanted.first, " to ",
                   wanted.end() - 1, ": pass the pieces of all ranks that saved the state"});
  }

  /// Copies the elements `wanted` to `to`, which has the same number of elements. All of them must be available.
  void read(const std::string& array, const parameter& of, const element_range& wanted, std::span<F> to) const {
    for (const auto* each : found_.at({array, of.name})) {
      const element_range part = common_part({each->first, each->values.size()}, wanted);
      std::copy_n(each->values.begin() + static_cast<std::ptrdiff_t>(part.size > 0 ? part.first - each->first : 0),
                  part.size, to.begin() + static_cast<std::ptrdiff_t>(part.size > 0 ? part.first - wanted.first : 0));
    }
  }

  /// Like `why_incomplete`, for the range `stored` of bucket `b`.
  std::string why_bucket_incomplete(const std::string& array, const parameter_layout& layout, std::size_t b,
                                    const element_range& stored) const {
    std::string why;
    layout.visit_parts(b, stored, [&](std::size_t i, const element_range& part) {
      if (why.empty()) why = why_incomplete(array, layout[i], {part.first - layout.of(i).first, part.size});
    });
    return why;
  }

  /// Copies the range `stored` of bucket `b` to `to`, which has room for exactly this range.
  void read_bucket(const std::string& array, const parameter_layout& layout, std::size_t b, const element_range& stored,
                   std::span<F> to) const {
    layout.visit_parts(b, stored, [&](std::size_t i, const element_range& part) {
      read(array, layout[i], {part.first - layout.of(i).first, part.size},
           to.subspan(part.first - stored.first, part.size));
    });
  }

 private:
  std::map<std::pair<std::string, std::string>, std::vector<const state_piece<F>*>> found_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
