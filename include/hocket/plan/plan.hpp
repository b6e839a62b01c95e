// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A plan: a value that gives the actions of every rank, and the collective that they perform.
///
/// An algorithm is a small constexpr type that models `plan::algorithm`; actions are computed on demand, so a plan for
/// 1 000 000 ranks takes no memory. `plan::any_algorithm` erases the type (a table of functions and the plan's own
/// state), so that the engine is compiled once and not once per algorithm. A user-defined plan needs no new type: list
/// its actions, see plan/listed.hpp.
///
/// @code
/// struct chain_broadcast {  // each rank forwards the message that it received
///   static constexpr const char* name() { return "chain_broadcast"; }
///   constexpr plan::collective collective() const { return {plan::collective_kind::broadcast, 0}; }
///   static constexpr plan::shape shape(int) { return {.chunks_per_block = 1}; }
///   static constexpr unsigned length(int ranks, int rank, unsigned) { return (rank > 0) + (rank + 1 < ranks); }
///   static constexpr plan::action at(int, int rank, unsigned, unsigned i) {
///     return rank > 0 && i == 0 ? plan::receive(rank - 1, {0}, plan::out(0)) : plan::send(rank + 1, {0}, plan::out(0));
///   }
/// };
/// static_assert(plan::algorithm<chain_broadcast>);
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/symmetry.hpp>

#include <concepts>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// The collective that a plan performs, with its postcondition. `block` r is the part of the vector that belongs to
/// rank r; if the collective has no blocks, the whole vector is one block.
enum class collective_kind : std::uint8_t {
  all_reduce,      ///< one block; everywhere out = combination of all ranks' in
  reduce_scatter,  ///< a block per rank; on rank r out[block r] = combination of all ranks' in[block r]
  all_gather,      ///< a block per rank; everywhere out[block r] = rank r's in[block r]
  all_to_all,      ///< a block per rank; on rank d out[block s] = rank s's in[block d]
  broadcast,       ///< one block; everywhere out = root's out before the plan ran
  barrier,         ///< no data; no rank ends before every rank has begun
  reduce,          ///< one block; on the root out = combination of all ranks' in
  gather,          ///< a block per rank; on the root out[block r] = rank r's in[block r]
  scatter          ///< a block per rank; on rank r out[block r] = root's in[block r]
};

/// The part of the vector that a buffer holds.
enum class buffer_part : std::uint8_t {
  nothing,    ///< the collective does not use this buffer on this rank
  own_block,  ///< the block of the rank
  whole       ///< all blocks
};

/// A kind of collective and its root.
struct collective {
  collective_kind kind = collective_kind::all_reduce;  ///< the kind
  int root = 0;                                        ///< of broadcast, reduce, gather and scatter; otherwise 0

  /// Returns the number of blocks of the vector.
  constexpr int blocks(int ranks) const noexcept {
    switch (kind) {
      case collective_kind::reduce_scatter:
      case collective_kind::all_gather:
      case collective_kind::all_to_all:
      case collective_kind::gather:
      case collective_kind::scatter: return ranks;
      default: return 1;
    }
  }
  /// Returns whether elements are combined.
  constexpr bool reduces() const noexcept {
    return kind == collective_kind::all_reduce || kind == collective_kind::reduce_scatter ||
           kind == collective_kind::reduce;
  }
  constexpr bool has_root() const noexcept {
    return kind == collective_kind::broadcast || kind == collective_kind::reduce || kind == collective_kind::gather ||
           kind == collective_kind::scatter;
  }
  /// Returns which part of the vector `in` of a rank holds.
  constexpr buffer_part in_part(int rank) const noexcept {
    switch (kind) {
      case collective_kind::broadcast:
      case collective_kind::barrier: return buffer_part::nothing;
      case collective_kind::all_gather:
      case collective_kind::gather: return buffer_part::own_block;
      case collective_kind::scatter: return rank == root ? buffer_part::whole : buffer_part::nothing;
      default: return buffer_part::whole;
    }
  }
  /// Returns which part of the vector `out` of a rank holds.
  constexpr buffer_part out_part(int rank) const noexcept {
    switch (kind) {
      case collective_kind::barrier: return buffer_part::nothing;
      case collective_kind::reduce_scatter:
      case collective_kind::scatter: return buffer_part::own_block;
      case collective_kind::reduce:
      case collective_kind::gather: return rank == root ? buffer_part::whole : buffer_part::nothing;
      default: return buffer_part::whole;
    }
  }
  friend constexpr bool operator==(const collective&, const collective&) = default;
};

constexpr const char* to_string(collective_kind kind) noexcept {
  switch (kind) {
    case collective_kind::all_reduce: return "all_reduce";
    case collective_kind::reduce_scatter: return "reduce_scatter";
    case collective_kind::all_gather: return "all_gather";
    case collective_kind::all_to_all: return "all_to_all";
    case collective_kind::broadcast: return "broadcast";
    case collective_kind::barrier: return "barrier";
    case collective_kind::reduce: return "reduce";
    case collective_kind::gather: return "gather";
    case collective_kind::scatter: return "scatter";
  }
  return "unknown";
}

/// The order in which contributions are combined, weakest guarantee last. `plan::prove` checks it: see plan/prove.hpp.
enum class combination_order : std::uint8_t {
  fixed_tree,  ///< order of operation/fixed_tree.hpp if the operation's `load_reduce` uses it, otherwise `rank_order`
  rank_order,  ///< 0, 1, 2, …: correct for any associative operation
  any_order    ///< correct only for commutative operations
};

/// Properties of a plan that the engine needs before the first action. A plan with an action that reads or writes more
/// than one slot of scratch can run only on blocks of equal length, because the slots of shorter ones are not adjacent.
struct shape {
  std::uint32_t chunks_per_block = 1;                      ///< chunks per block
  std::uint32_t scratch = 0;                               ///< slots of scratch on each rank
  std::uint32_t lanes = 1;                                 ///< lanes on each rank
  bool peer_pointers = false;                              ///< uses load, load_reduce, push, signal or wait
  combination_order order = combination_order::any_order;  ///< the strongest order that the plan guarantees
  rank_symmetry symmetry = rank_symmetry::none;            ///< how the ranks' actions correspond to each other
  bool equal_blocks = false;                               ///< an action moves several slots of scratch
};

/// The most ranks for which the plans of plan/collective/ are defined: sums of two ranks fit in an `int`.
inline constexpr int most_ranks = 1'000'000'000;

/// A collective algorithm: for every number of ranks, the actions of each rank.
template <class Plan>
concept algorithm = std::copy_constructible<Plan> && requires(const Plan& plan, int n, unsigned i) {
  { plan.name() } -> std::convertible_to<const char*>;
  { plan.collective() } -> std::same_as<collective>;
  { plan.shape(n) } -> std::same_as<shape>;
  { plan.length(n, n, i) } -> std::convertible_to<unsigned>;  // ranks, rank, lane
  { plan.at(n, n, i, i) } -> std::same_as<action>;            // ranks, rank, lane, position
};

/// Any algorithm, with its type erased. Small trivially copyable plans are stored inside; others are shared.
class any_algorithm {
 public:
  /// Stores `plan`.
  template <class Plan>
    requires(!std::same_as<Plan, any_algorithm> && algorithm<Plan>)
  any_algorithm(Plan plan)
      : table_(
            &table_of<Plan>) {  // NOLINT: implicit, so that a plan can be passed wherever `any_algorithm` is expected
    if constexpr (stored_inside<Plan>) {
      ::new (static_cast<void*>(storage_)) Plan(std::move(plan));
    } else {
      shared_ = std::make_shared<const Plan>(std::move(plan));
    }
  }

  /// Returns the form that is correct if `in` and `out` are the same memory: see plan/in_place.hpp.
  any_algorithm for_in_place() const {
    any_algorithm changed = *this;
    table_->make_in_place(state(), changed);
    return changed;
  }

  const char* name() const { return table_->name(state()); }
  plan::collective collective() const { return table_->collective(state()); }
  plan::shape shape(int ranks) const { return table_->shape(state(), ranks); }
  unsigned length(int ranks, int rank, unsigned lane) const { return table_->length(state(), ranks, rank, lane); }
  action at(int ranks, int rank, unsigned lane, unsigned i) const { return table_->at(state(), ranks, rank, lane, i); }

 private:
  static constexpr std::size_t capacity = 16;

  template <class Plan>
  static constexpr bool stored_inside =
      std::is_trivially_copyable_v<Plan> && sizeof(Plan) <= capacity && alignof(Plan) <= alignof(std::max_align_t);

  struct table {
    const char* (*name)(const void*);
    plan::collective (*collective)(const void*);
    plan::shape (*shape)(const void*, int);
    unsigned (*length)(const void*, int, int, unsigned);
    action (*at)(const void*, int, int, unsigned, unsigned);
    void (*make_in_place)(const void*, any_algorithm& self);
  };

  template <class Plan>
  static void make_in_place_of([[maybe_unused]] const void* p, [[maybe_unused]] any_algorithm& self) {
    if constexpr (requires(Plan made) { made.in_place = true; }) {
      Plan made = *static_cast<const Plan*>(p);
      made.in_place = true;
      self = any_algorithm(std::move(made));
    }
  }

  template <class Plan>
  static constexpr table table_of{[](const void* p) -> const char* { return static_cast<const Plan*>(p)->name(); },
                                  [](const void* p) { return static_cast<const Plan*>(p)->collective(); },
                                  [](const void* p, int ranks) { return static_cast<const Plan*>(p)->shape(ranks); },
                                  [](const void* p, int ranks, int rank, unsigned lane) -> unsigned {
                                    return static_cast<const Plan*>(p)->length(ranks, rank, lane);
                                  },
                                  [](const void* p, int ranks, int rank, unsigned lane, unsigned i) {
                                    return static_cast<const Plan*>(p)->at(ranks, rank, lane, i);
                                  },
                                  &make_in_place_of<Plan>};

  const void* state() const noexcept { return shared_ ? shared_.get() : static_cast<const void*>(storage_); }

  const table* table_;
  alignas(std::max_align_t) std::byte storage_[capacity] = {};
  std::shared_ptr<const void> shared_;
};

static_assert(algorithm<any_algorithm>);

}  // namespace plan
HOCKET_END_NAMESPACE
