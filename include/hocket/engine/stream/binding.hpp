// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a plan needs in order to run on a device stream (`stream_binding`), and checks whether streams can run it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/plan_limits.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/kernel/device/stream_kernel.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/merged_lanes.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A plan bound to device buffers, an element type and an operation. `in` may be the same memory as its part of `out`.
struct stream_binding {
  plan::any_algorithm plan;
  std::size_t block_elements = 0;  ///< see plan::layout; the collective determines the number of blocks
  const kernel::stream_kernel* element_kernel = nullptr;
  const void* operation = nullptr;  ///< passed to the element kernel at each enqueue
  std::uint64_t in = 0;             ///< device address of the contribution
  std::uint64_t out = 0;            ///< device address of the result
  /// True: all ranks are on one device, and rank 0 combines the contributions of all in one kernel launch, in rank
  /// order. `plan` then only provides the name and the collective, all_reduce; `element_kernel->to_all` must be set.
  bool fused = false;
  plan::combination_order order = plan::combination_order::any_order;  ///< the weakest order that is acceptable
  step_observer observer = {};                                         ///< called for each action after it was enqueued
  std::uint64_t types = 0;  ///< hash of element type and operation, equal on all ranks
  failure refused = {};     ///< error in this rank's arguments; if any rank has one, no rank binds
};

inline plan::layout layout_of(const stream_binding& bound, int ranks) {
  const plan::shape shape = bound.plan.shape(ranks);
  return {bound.block_elements, static_cast<std::uint32_t>(bound.plan.collective().blocks(ranks)),
          shape.chunks_per_block};
}

/// Returns the range, in bytes of the whole vector, that the buffer `where` of rank `rank` holds.
inline plan::extent bytes_of(const stream_binding& bound, plan::region where, int ranks, int rank) {
  const plan::extent elements = extent_of(bound.plan.collective(), where, layout_of(bound, ranks), rank);
  return {elements.begin * bound.element_kernel->size, elements.size * bound.element_kernel->size};
}

/// Returns whether `in` is the same memory as its part of `out`; sets `wrong` if the two overlap in any other way.
inline bool has_in_place_input(const stream_binding& bound, int ranks, int rank, failure& wrong) {
  const plan::extent in = bytes_of(bound, plan::region::in, ranks, rank);
  const plan::extent out = bytes_of(bound, plan::region::out, ranks, rank);
  if (bound.in == 0 || in.size == 0 || out.size == 0) return false;
  if (bound.in + out.begin == bound.out + in.begin) return true;  // each element has one address in both
  if (bound.in < bound.out + out.size && bound.out < bound.in + in.size) {
    wrong = make_failure(
        errc::invalid_argument,
        "in and out overlap: they must be disjoint, or the result must lie exactly where the contribution lies");
  }
  return false;
}

/// Returns why a stream can't run the action `each` of `rank`; empty if it can.
inline std::string refused_by_streams(const stream_binding& bound, const plan::action& each, const plan::shape& shape,
                                      int ranks, int rank, unsigned tags) {
  using plan::action_kind;
  const plan::layout layout = layout_of(bound, ranks);
  const plan::collective collective = bound.plan.collective();
  if (each.kind == action_kind::push)
    return "pushes, which streams do not support: use one_shot for small vectors on devices";
  if (each.from == plan::region::inbox)
    return "uses an inbox, which streams do not support: choose one_shot, two_shot or direct";
  const bool flags = each.kind == action_kind::signal || each.kind == action_kind::wait;
  if (flags && shape.lanes != 1) {
    return "uses signals in " + std::to_string(shape.lanes) +
           " lanes, but a stream runs one lane: choose a plan with one lane";
  }
  if (flags && each.tag >= tags)
    return "uses an invalid tag: number the tags from 0, because there are only " + std::to_string(tags) + " tags";
  const bool to_all = flags || each.kind == action_kind::copy || each.kind == action_kind::load_reduce;
  if (each.peer >= ranks || each.peer < (to_all ? plan::all_peers : 0))
    return "names a peer that is not a rank of the communicator";
  if (each.count > 0 && each.chunk + each.count > layout.chunk_count())
    return "uses a chunk beyond the number of chunks that its shape defines";
  const int read = each.kind == action_kind::load ? each.peer : rank;
  if (!fits(each.from, each.from_at, each, layout, collective, shape.scratch, read) ||
      !fits(each.to, each.to_at, each, layout, collective, shape.scratch, rank)) {
    return "reads or writes beyond the end of a buffer, or of the scratch memory that its shape requests";
  }
  if (const char* const fault = fault_of(each, rank, shape.peer_pointers))
    return "has an invalid action: " + std::string(fault);
  if (each.kind != action_kind::load_reduce && each.kind != action_kind::receive_reduce) return {};
  if (bound.element_kernel->combine_many == nullptr)
    return "combines elements, but this call has no operation: choose a plan that only moves them";
  if (bound.element_kernel->finishes && (each.kind == action_kind::receive_reduce || each.from != plan::region::in)) {
    return "combines partial results, but an operation that prepares and finishes combines all in one step on devices: "
           "choose one_shot, two_shot or direct";
  }
  const std::size_t sources = each.kind == action_kind::receive_reduce ? 2 : static_cast<std::size_t>(ranks);
  if (sources <= bound.element_kernel->most_sources) return {};
  return "combines the contributions of " + std::to_string(sources) +
         " ranks in one step, but kernels combine at most " + std::to_string(bound.element_kernel->most_sources);
}

/// Returns why a stream can't run the plan; no failure if it can.
inline failure refused_by_streams(const stream_binding& bound, int ranks, int rank, unsigned tags) {
  const plan::shape shape = bound.plan.shape(ranks);
  const auto refuse = [&](const std::string& why) {
    return make_failure(errc::invalid_argument, "plan '" + std::string(bound.plan.name()) + "' " + why);
  };
  if (bound.plan.collective().reduces() && shape.order > bound.order) {
    return refuse(bound.order == plan::combination_order::fixed_tree
                      ? "does not combine in the fixed tree that require(fixed_tree) demands, or its shape does not "
                        "declare it: choose one_shot, two_shot or direct, which do"
                      : "reorders operands, and the operation is not known to be commutative: give it `static "
                        "constexpr bool commutative = true`, or choose a plan that keeps rank order");
  }
  for (unsigned lane = 0; lane < shape.lanes; ++lane) {
    const unsigned length = bound.plan.length(ranks, rank, lane);
    for (unsigned i = 0; i < length; ++i) {
      const plan::action each = bound.plan.at(ranks, rank, lane, i);
      const std::string why = refused_by_streams(bound, each, shape, ranks, rank, tags);
      if (!why.empty()) return refuse(why);
    }
  }
  return {};
}

/// Returns whether any action of `rank` combines the rank's data with a message.
inline bool combines_messages(const plan::merged_lanes& order, int rank) {
  const auto& steps = order.steps[static_cast<std::size_t>(rank)];
  return std::any_of(steps.begin(), steps.end(),
                     [](const plan::merged_step& each) { return each.what.kind == plan::action_kind::receive_reduce; });
}

/// Returns why one launch can't combine for all ranks; no failure if it can.
inline failure refused_fused(const stream_binding& bound, int ranks, bool one_device) {
  if (bound.plan.collective().kind != plan::collective_kind::all_reduce) {
    return make_failure(errc::invalid_argument, "one launch for all ranks supports only all_reduce");
  }
  if (bound.element_kernel->to_all == nullptr || static_cast<std::size_t>(ranks) > bound.element_kernel->most_fused) {
    return make_failure(errc::invalid_argument,
                        "no kernel combines for " + std::to_string(ranks) + " ranks in one launch");
  }
  if (one_device) return {};
  return make_failure(errc::invalid_argument,
                      "one launch for all ranks requires all ranks on one device: choose two_shot");
}

/// Returns whether a rank reads region `where` of a peer. This includes sends: the receiver reads the sender's memory.
inline bool is_read_by_peers(const plan::merged_lanes& order, plan::region where) {
  for (const auto& steps : order.steps) {
    for (const plan::merged_step& each : steps) {
      const plan::action_kind what = each.what.kind;
      const bool reads =
          what == plan::action_kind::load || what == plan::action_kind::load_reduce || what == plan::action_kind::send;
      if (reads && each.what.from == where && each.what.count > 0) return true;
    }
  }
  return false;
}

}  // namespace detail
HOCKET_END_NAMESPACE
