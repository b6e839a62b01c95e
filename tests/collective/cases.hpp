// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a collective on threads, for many plans, sizes and placements, and compares each rank's result with the
/// sequential evaluation of the plan, bit by bit, and each rank's trace with the plan's actions, step by step.
#pragma once

#include "support/elements.hpp"
#include "support/reference.hpp"
#include "support/thread_ranks.hpp"
#include "support/trace.hpp"

#include <hocket/collective/host/call.hpp>
#include <hocket/core/options.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace hocket_test {

namespace plan = hocket::plan;

inline const std::vector<int> rank_counts = {1, 2, 3, 5, 7, 8};

/// One call: its plan, the number of elements in a block, and the placement of its buffers.
struct call_case {
  plan::any_algorithm chosen;
  std::size_t elements = 0;
  bool in_place = false;
  std::size_t offset = 0;  ///< elements after an aligned address

  std::string text() const {
    return std::string(plan::to_string(chosen.collective().kind)) + " by " + chosen.name() + " of " +
           std::to_string(elements) + " elements" + (in_place ? ", in place" : "") +
           (offset != 0 ? ", misaligned" : "");
  }
};

/// A case with each rank's input and expected output.
template <class T>
struct expected_case {
  call_case call;
  std::vector<std::vector<T>> inputs;
  std::vector<std::vector<T>> outputs;
};

/// True if the plan combines in rank order, as an operation that is not commutative needs.
inline bool keeps_order(const plan::any_algorithm& chosen, int ranks) {
  return chosen.shape(ranks).order <= plan::combination_order::rank_order;
}

/// The thread sanitizer makes the evaluation of large vectors ten times slower, and checks only the order of accesses,
/// which is the same for a shorter vector.
constexpr std::size_t bearable(std::size_t size) noexcept {
#if defined(__SANITIZE_THREAD__)
  return size > 4096 ? size / 8 : size;
#else
  return size;
#endif
}

/// Combines each plan with each size. Placements (in place or not, aligned or not) alternate, so that each plan gets
/// each placement with some size.
inline std::vector<call_case> pair_up(const std::vector<plan::any_algorithm>& plans,
                                      const std::vector<std::size_t>& sizes, bool may_be_in_place = true) {
  std::vector<call_case> cases;
  for (std::size_t p = 0; p < plans.size(); ++p) {
    for (std::size_t s = 0; s < sizes.size(); ++s) {
      cases.push_back({plans[p], bearable(sizes[s]), may_be_in_place && (p + s) % 2 == 1, (p + s) / 2 % 2});
    }
  }
  return cases;
}

template <class T, class Op>
std::vector<expected_case<T>> evaluate_all(int ranks, const std::vector<call_case>& cases, const Op& op) {
  std::vector<expected_case<T>> all;
  for (const call_case& each : cases) {
    const plan::layout layout = layout_for(each.chosen, ranks, each.elements);
    std::vector<std::vector<T>> inputs;
    for (int rank = 0; rank < ranks; ++rank) {
      inputs.push_back(samples<T>(rank, input_size(each.chosen, layout, rank)));
    }
    auto outputs = evaluate<T, Op>(each.chosen, ranks, layout, inputs, op, each.in_place);
    all.push_back({each, std::move(inputs), std::move(outputs)});
  }
  return all;
}

/// Runs `call(me, case, in, out, options)` with each case on every rank, on guarded buffers, and compares the results.
/// For a case in place, `place(rank, whole, ...)` returns `in` and `out` as parts of the buffer `whole`.
template <class T, class Op, class Place, class Call>
void check_cases(int ranks, const std::vector<call_case>& cases, const Op& op, Place place, Call call) {
  const auto all = evaluate_all<T>(ranks, cases, op);
  on_ranks(ranks, [&](thread_rank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    for (const expected_case<T>& each : all) {
      me.at([&] { return each.call.text(); });
      const std::vector<T>& input = each.inputs[rank];
      const std::vector<T>& output = each.outputs[rank];
      guarded<T> first(each.call.in_place ? std::vector<T>(std::max(input.size(), output.size())) : input,
                       each.call.offset);
      guarded<T> second(each.call.in_place ? 0 : output.size(), each.call.offset);
      std::span<T> in = first.elements();
      std::span<T> out = second.elements();
      if (each.call.in_place) {
        std::tie(in, out) = place(me.rank(), first.elements(), input.size(), output.size());
        std::copy(input.begin(), input.end(), in.begin());
      }
      trace steps;
      call(me, each.call, std::span<const T>(in), out,
           hocket::with(hocket::algorithm(each.call.chosen), hocket::observe_steps(steps.observer())));

      const std::span<const T> found = out;
      me.check(same_bytes(found, std::span<const T>(output)),
               [&] { return first_difference(found, std::span<const T>(output)); });
      me.check(first.intact() && second.intact(), "wrote outside the buffers");
      if (!each.call.in_place) me.check(same_bytes(std::span<const T>(in), std::span<const T>(input)), "changed `in`");
      const bool one_buffer = each.call.in_place || hocket::reduction<Op, T>::prepares;
      const std::string wrong =
          difference(steps.events(), {one_buffer ? each.call.chosen.for_in_place() : each.call.chosen, ranks, me.rank(),
                                      each.call.elements, sizeof(typename hocket::reduction<Op, T>::partial)});
      me.check(wrong.empty(), wrong);
    }
  });
}

}  // namespace hocket_test
