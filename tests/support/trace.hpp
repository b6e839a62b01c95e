// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Records the engine's actions and compares them with the plan: `with(observe_steps(trace.observer()))`.
#pragma once

#include <hocket/engine/step_observer.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/to_string.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

/// The completed steps of one rank, in order. Must outlive the calls that it observes.
class trace {
 public:
  hocket::step_observer observer() noexcept {
    return {
        [](void* self, const hocket::completed_step& event) { static_cast<trace*>(self)->events_.push_back(event); },
        this};
  }
  const std::vector<hocket::completed_step>& events() const noexcept { return events_; }
  void clear() noexcept { events_.clear(); }

 private:
  std::vector<hocket::completed_step> events_;
};

/// The parameters with which a plan was run.
struct traced_run {
  hocket::plan::any_algorithm plan;
  int ranks = 1;
  int rank = 0;
  std::size_t block_elements = 0;
  std::size_t element_size = 1;
  std::size_t segment_elements = static_cast<std::size_t>(-1);  ///< longer blocks run in several segments
  const hocket::plan::layout* in_layout = nullptr;              ///< blocks of given lengths; replaces `block_elements`
  const hocket::plan::layout* out_layout = nullptr;             ///< if it differs from that of `in`
};

namespace detail {

inline std::string difference_in_lane(const std::vector<const hocket::completed_step*>& lane, const traced_run& run,
                                      const hocket::plan::layout& layout, unsigned number) {
  const std::string where = "lane " + std::to_string(number);
  const unsigned length = run.plan.length(run.ranks, run.rank, number);
  if (lane.size() != length) {
    return where + ": " + std::to_string(lane.size()) + " steps were done, the plan lists " + std::to_string(length);
  }
  for (unsigned i = 0; i < length; ++i) {
    const hocket::plan::action listed = run.plan.at(run.ranks, run.rank, number, i);
    const hocket::completed_step& done = *lane[i];
    const bool by_out = run.out_layout != nullptr && listed.to == hocket::plan::region::out;
    const hocket::plan::layout& where_it_lies = by_out ? *run.out_layout : layout;
    const std::size_t elements = listed.count == 0 ? 0 : where_it_lies.chunks(listed.chunk, listed.count).size;
    const std::string step = where + ", step " + std::to_string(i) + ": ";
    if (done.position != i) return step + "reported as step " + std::to_string(done.position);
    if (!(done.what == listed)) {
      return step + "did " + hocket::plan::to_string(done.what) + ", the plan lists " + hocket::plan::to_string(listed);
    }
    if (done.bytes != elements * run.element_size) {
      return step + std::to_string(done.bytes) + " bytes, the plan's chunks have " +
             std::to_string(elements * run.element_size);
    }
  }
  return {};
}

inline std::string difference_in_segment(const std::vector<hocket::completed_step>& events, std::uint64_t sequence,
                                         const traced_run& run, std::size_t elements) {
  const hocket::plan::shape shape = run.plan.shape(run.ranks);
  const auto blocks = static_cast<std::uint32_t>(run.plan.collective().blocks(run.ranks));
  const hocket::plan::layout layout =
      run.in_layout != nullptr ? *run.in_layout : hocket::plan::layout(elements, blocks, shape.chunks_per_block);
  std::vector<std::vector<const hocket::completed_step*>> lanes(shape.lanes);
  for (const hocket::completed_step& each : events) {
    if (each.sequence != sequence) continue;
    if (each.lane >= shape.lanes)
      return "a step in lane " + std::to_string(each.lane) + ", which the plan does not have";
    lanes[each.lane].push_back(&each);
  }
  for (unsigned number = 0; number < shape.lanes; ++number) {
    if (std::string text = difference_in_lane(lanes[number], run, layout, number); !text.empty()) return text;
  }
  return {};
}

}  // namespace detail

/// Describes how the trace of one call differs from the plan: empty if, in each lane, the steps are those of the plan,
/// in order, with the bytes of its chunks. `sequence`: the number of the call's first segment; by default, the first
/// one in the trace.
inline std::string difference(const std::vector<hocket::completed_step>& events, const traced_run& run,
                              std::uint64_t sequence = 0) {
  if (sequence == 0 && !events.empty()) {
    sequence = std::min_element(events.begin(), events.end(), [](const auto& a, const auto& b) {
                 return a.sequence < b.sequence;
               })->sequence;
  }
  std::size_t begin = 0;
  do {
    const std::size_t elements = std::min(run.segment_elements, run.block_elements - begin);
    std::string text = detail::difference_in_segment(events, sequence, run, elements);
    if (!text.empty()) {
      return std::string(run.plan.name()) + " on rank " + std::to_string(run.rank) + " of " +
             std::to_string(run.ranks) + ", " + std::to_string(run.block_elements) + " elements, operation #" +
             std::to_string(sequence) + ", " + text;
    }
    begin += elements;
    ++sequence;
  } while (begin < run.block_elements);
  return {};
}

}  // namespace hocket_test
