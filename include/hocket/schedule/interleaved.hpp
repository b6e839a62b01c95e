// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Several stages per rank in a loop: the pipeline fills v times as fast, so that its bubble is v times shorter, at the
/// cost of more messages. A backward pass computes both gradients (interleaved 1F1B), or they are separate, so that
/// weight gradients fill the rest of the bubble (interleaved zero bubble).
///
/// Interleaved 1F1B is due to Narayanan et al. (2021), zero bubble to Qi et al. (ZB-H1, 2024).
#pragma once

#include <hocket/schedule/schedule.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan::pipeline {
namespace detail {

struct chunk_of_work {
  int chunk;
  int microbatch;
};

/// Returns the order of a rank's work: a group of microbatches passes all chunks, then the next group does.
constexpr std::vector<chunk_of_work> in_groups(int microbatches, int chunks, int group, bool last_chunk_first) {
  std::vector<chunk_of_work> order;
  order.reserve(static_cast<std::size_t>(microbatches) * static_cast<std::size_t>(chunks));
  for (int begin = 0; begin < microbatches; begin += group) {
    for (int c = 0; c < chunks; ++c) {
      for (int m = begin; m < std::min(begin + group, microbatches); ++m) {
        order.push_back({last_chunk_first ? chunks - 1 - c : c, m});
      }
    }
  }
  return order;
}

/// Returns whether each group, including the last, has a microbatch for every rank.
constexpr bool is_group(int ranks, int microbatches, int group) noexcept {
  return group >= ranks && group <= microbatches && (microbatches % group == 0 || microbatches % group >= ranks);
}

/// Returns the group size. The default is the largest that all rounds can have: M divided by as many rounds of at least
/// P as fit. With one stage per rank groups make no difference, so the default is always valid.
constexpr int group_of(const char* generator, const placement& where, int microbatches, int group) {
  const int ranks = where.ranks();
  if (is_group(ranks, microbatches, group)) return group;
  if (group != 0) {
    const auto require = [&](bool holds, const char* rule, int found) {
      if (holds) return;
      require_rule(false, generator, (std::string(rule) + ' ' + std::to_string(found)).c_str(), ranks, microbatches);
    };
    require(group >= ranks, "groups of at least as many microbatches as there are ranks, not of", group);
    require(group <= microbatches, "groups of at most as many microbatches as there are, not of", group);
    require(false, "groups of at least as many microbatches as there are ranks, the last group too, which has only",
            microbatches % group);
  }
  if (where.stages() == ranks) return microbatches;
  const int rounds = std::max(1, microbatches / ranks);
  require_rule(microbatches % rounds == 0, generator,
               "a number of microbatches that M/P (rounded down) divides, or a group size", ranks, microbatches);
  return microbatches / rounds;
}

}  // namespace detail

/// Interleaved 1F1B. With `stages_per_rank` 1 the warm-up is twice as long as that of `one_forward_one_backward`.
/// `group`: number of microbatches that pass a stage before the next stage of the rank has its turn; at least P, at
/// most M. The last group may be smaller, but not smaller than P. 0 chooses M / max(1, M/P), where M/P must divide M
/// unless there is one stage per rank. With unit costs and M >= P: 3M + 3(P-1)/v long.
constexpr schedule interleaved(int ranks, int microbatches, int stages_per_rank, int group = 0) {
  detail::require_sizes("interleaved", ranks, microbatches);
  schedule made("interleaved", placement::loop(ranks, stages_per_rank), microbatches);
  const int size = detail::group_of("interleaved", made.placement, microbatches, group);
  const auto forwards = detail::in_groups(microbatches, stages_per_rank, size, false);
  const auto backwards = detail::in_groups(microbatches, stages_per_rank, size, true);
  for (int rank = 0; rank < ranks; ++rank) {
    const std::size_t warm_up =
        std::min(static_cast<std::size_t>((stages_per_rank - 1) * size + 2 * (ranks - 1 - rank)), forwards.size());
    for (std::size_t k = 0; k < forwards.size() + warm_up; ++k) {
      if (k < forwards.size()) {
        made.of(rank).push_back(forward(forwards[k].chunk * ranks + rank, forwards[k].microbatch));
      }
      if (k >= warm_up) {
        const auto& next = backwards[k - warm_up];
        made.of(rank).push_back(backward(next.chunk * ranks + rank, next.microbatch));
      }
    }
  }
  return made;
}

namespace detail {

/// Interleaved zero bubble; `name` is the generator that errors name.
constexpr schedule zero_bubble_in_loop(const char* name, int ranks, int microbatches, int stages_per_rank, int group) {
  detail::require_sizes(name, ranks, microbatches);
  schedule made(name, placement::loop(ranks, stages_per_rank), microbatches);
  const int size = detail::group_of(name, made.placement, microbatches, group);
  const auto forwards = detail::in_groups(microbatches, stages_per_rank, size, false);
  const auto backwards = detail::in_groups(microbatches, stages_per_rank, size, true);
  for (int rank = 0; rank < ranks; ++rank) {
    row& actions = made.of(rank);
    const std::size_t warm_up =
        std::min(static_cast<std::size_t>((stages_per_rank - 1) * size + (ranks - 1 - rank)), forwards.size());
    std::size_t weights = 0;
    const auto add_weight_gradient = [&] {
      const auto& oldest = backwards[weights++];
      actions.push_back(weight_gradient(oldest.chunk * ranks + rank, oldest.microbatch));
    };
    for (std::size_t k = 0; k < forwards.size() + warm_up; ++k) {
      if (k < forwards.size()) {
        actions.push_back(forward(forwards[k].chunk * ranks + rank, forwards[k].microbatch));
      }
      if (k < warm_up) continue;
      const auto& next = backwards[k - warm_up];
      actions.push_back(input_gradient(next.chunk * ranks + rank, next.microbatch));
      if (k >= warm_up + static_cast<std::size_t>(rank)) add_weight_gradient();
    }
    while (weights < backwards.size()) add_weight_gradient();
  }
  return made;
}

}  // namespace detail

/// Interleaved zero bubble: half the warm-up of `interleaved`, and weight gradients deferred until the rank would be
/// idle. `group` is as for `interleaved`. With unit costs and M >= P: 3M + (P-1)/v long.
constexpr schedule interleaved_zero_bubble(int ranks, int microbatches, int stages_per_rank, int group = 0) {
  return detail::zero_bubble_in_loop("interleaved_zero_bubble", ranks, microbatches, stages_per_rank, group);
}

/// ZB1P: zero bubble with one stage per rank. With unit costs and M >= P: 3M + P-1 long, min(P, M) microbatches of
/// activations on every rank.
constexpr schedule zero_bubble(int ranks, int microbatches) {
  return detail::zero_bubble_in_loop("zero_bubble", ranks, microbatches, 1, 0);
}

}  // namespace plan::pipeline
HOCKET_END_NAMESPACE
