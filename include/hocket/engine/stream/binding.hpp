// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a plan is enqueued on, and whether a stream can run it.
#pragma once

#include <hocket/collective/detail/plan_limits.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/step_event.hpp>
#include <hocket/kernel/device/stream_leaf.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// One plan, bound to buffers of a device, an element type and an operation. The buffers hold elements; `in` may be the same memory as the part of `out` that it becomes.
struct stream_binding {
  plan::any plan;
  std::size_t block_elements = 0;  ///< see plan::layout; the goal says how many blocks there are
  const kernel::stream_leaf* leaf = nullptr;
  const void* operation = nullptr;  ///< passed to the leaf, whenever it is enqueued
  std::uint64_t in = 0;
  std::uint64_t out = 0;
  /// All ranks are on one device, and the first of them combines for all, in one launch, in rank order. `plan` is one of
  /// all_reduce, and is only named; the leaf has `to_all`.
  bool fused = false;
  plan::combination_order order = plan::combination_order::any_order;  ///< the weakest that will do
  step_observer observer = {};  ///< told of each action when it has been enqueued
  std::uint64_t types = 0;      ///< of element and operation: equal on all ranks
  failure refused = {};         ///< what this rank has found wrong: then nobody binds
};

inline plan::layout layout_of(const stream_binding& bound, int ranks) {
  const plan::shape shape = bound.plan.shape(ranks);
  return {bound.block_elements, static_cast<std::uint32_t>(bound.plan.goal().blocks(ranks)), shape.pieces};
}

/// The bytes of the whole vector that a rank's buffer holds.
inline plan::extent bytes_of(const stream_binding& bound, plan::region where, int ranks, int rank) {
  const plan::extent elements = extent_of(bound.plan.goal().kind, where, layout_of(bound, ranks), rank);
  return {elements.begin * bound.leaf->size, elements.size * bound.leaf->size};
}

/// Whether what is contributed lies where its result will; the two must not overlap in any other way, and `wrong` says so.
inline bool lies_in_place(const stream_binding& bound, int ranks, int rank, failure& wrong) {
  const plan::extent in = bytes_of(bound, plan::region::in, ranks, rank);
  const plan::extent out = bytes_of(bound, plan::region::out, ranks, rank);
  if (bound.in == 0 || in.size == 0 || out.size == 0) return false;
  if (bound.in + out.begin == bound.out + in.begin) return true;  // so that equal elements have equal addresses
  if (bound.in < bound.out + out.size && bound.out < bound.in + in.size) {
    wrong = make_failure(errc::invalid_argument,
                         "in and out overlap: they must be apart, or the result lie where the contribution was");
  }
  return false;
}

/// Why a stream can't run the plan; none if it can.
inline failure refused_by_streams(const stream_binding& bound, int ranks, int rank, unsigned tags) {
  const plan::shape shape = bound.plan.shape(ranks);
  const plan::layout layout = layout_of(bound, ranks);
  const plan::goal_kind goal = bound.plan.goal().kind;
  const auto refuse = [&](const std::string& why) {
    return make_failure(errc::invalid_argument, "plan '" + std::string(bound.plan.name()) + "' " + why);
  };
  if (bound.plan.goal().reduces() && shape.order > bound.order) {
    return refuse(
        bound.order == plan::combination_order::fixed_tree
            ? "does not combine in the fixed tree, or its shape does not say so, and require(fixed_tree) asks "
              "for it"
            : "reorders operands, and the operation is not known to be commutative");
  }
  if (shape.lanes != 1) {
    return refuse("has " + std::to_string(shape.lanes) + " lanes, and a stream is one: choose a plan with one");
  }
  const unsigned length = bound.plan.length(ranks, rank, 0);
  for (unsigned i = 0; i < length; ++i) {
    const plan::action each = bound.plan.at(ranks, rank, 0, i);
    switch (each.what) {
      case plan::verb::send:
      case plan::verb::receive:
      case plan::verb::receive_reduce:
        return refuse(
            "has messages, which no stream can send: choose one with peer pointers (one_shot, two_shot, direct), or "
            "buffers of the host");
      case plan::verb::push:
        return refuse("pushes, which only hosts do: one_shot is as good for small vectors on devices");
      default: break;
    }
    if (each.from == plan::region::inbox) return refuse("has an inbox, which only hosts have");
    const bool flags = each.what == plan::verb::signal || each.what == plan::verb::wait;
    if (flags && each.tag >= tags) return refuse("uses a tag beyond the " + std::to_string(tags) + " that there are");
    const bool to_all = flags || each.what == plan::verb::copy || each.what == plan::verb::load_reduce;
    if (each.peer >= ranks || each.peer < (to_all ? plan::all_peers : 0))
      return refuse("names a rank that is not there");
    if (each.count > 0 && each.chunk + each.count > layout.chunk_count())
      return refuse("names a chunk that is not there");
    const int read = each.what == plan::verb::load ? each.peer : rank;
    if (!fits(each.from, each.from_at, each, layout, goal, shape.scratch, read) ||
        !fits(each.to, each.to_at, each, layout, goal, shape.scratch, rank)) {
      return refuse("reads or writes beyond the end of a buffer");
    }
    if (const char* const fault = fault_of(each, rank, shape.peer_pointers)) return refuse(": " + std::string(fault));
    if (each.what == plan::verb::load_reduce && bound.leaf->many == nullptr)
      return refuse("combines, and there is no operation");
    if (each.what == plan::verb::load_reduce && bound.leaf->finishes && each.from != plan::region::in) {
      return refuse(
          "combines what was combined before, which an operation that prepares and finishes does at once on devices: "
          "choose one_shot, two_shot or direct");
    }
    if (each.what == plan::verb::load_reduce && static_cast<std::size_t>(ranks) > bound.leaf->most_sources) {
      return refuse("combines the contributions of " + std::to_string(ranks) + " ranks at once, and kernels at most " +
                    std::to_string(bound.leaf->most_sources));
    }
  }
  return {};
}

/// Why the contributions can't be combined for all ranks at once; none if they can.
inline failure refused_fused(const stream_binding& bound, int ranks, bool one_device) {
  if (bound.plan.goal().kind != plan::goal_kind::all_reduce) {
    return make_failure(errc::invalid_argument, "one launch for all ranks is for all_reduce");
  }
  if (bound.leaf->to_all == nullptr || static_cast<std::size_t>(ranks) > bound.leaf->most_fused) {
    return make_failure(errc::invalid_argument,
                        "there is no kernel that combines for " + std::to_string(ranks) + " ranks at once");
  }
  if (one_device) return {};
  return make_failure(errc::invalid_argument, "one launch for all ranks is for ranks on one device: choose two_shot");
}

/// Whether any rank's actions read `where` of a peer.
inline bool is_read_by_peers(const plan::any& plan, plan::region where, int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    const unsigned length = plan.length(ranks, rank, 0);
    for (unsigned i = 0; i < length; ++i) {
      const plan::action each = plan.at(ranks, rank, 0, i);
      const bool reads = each.what == plan::verb::load || each.what == plan::verb::load_reduce;
      if (reads && each.from == where) return true;
    }
  }
  return false;
}

}  // namespace detail
HOCKET_END_NAMESPACE
