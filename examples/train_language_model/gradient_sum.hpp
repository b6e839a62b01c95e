// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the ranks add up in one step: the gradient and, as three numbers more at its end, the sum of the losses, the
/// count of predicted bytes and a vote to stop. One all_reduce carries all of it.
///
/// Each rank adds as many microbatches as it likes before the sum goes over the ranks. Sums and counts travel apart and
/// are divided once, at the very end: a mean of means would weigh microbatches of different sizes wrongly.
///
/// There are two kinds with one interface. `float_gradient_sum` adds floats: fast, and the last digits depend on how
/// the batch was cut. `exact_gradient_sum` forms each sequence's gradient apart and adds these without any rounding:
/// the result has the same bits for every number of ranks and microbatches.
#pragma once

#include "model.hpp"
#include "text.hpp"

#include <hocket/hocket.hpp>
#include <hocket/operation/exact_sum.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace language_model {

/// The sum over all ranks, ready for use. Equal on all ranks to the last bit.
struct step_total {
  double loss = 0;           ///< mean over all predicted bytes, in nats
  double tokens = 0;         ///< predicted bytes
  double gradient_norm = 0;  ///< of the mean gradient
  bool stop = false;         ///< whether any rank voted to stop
};

namespace detail {

/// Where the three further numbers lie, counted from the end of the gradient.
enum further : std::size_t { loss, tokens, stop, further_numbers };

/// Divides the summed gradient by the number of predicted bytes.
inline step_total finish(std::span<float> gradient, float loss_sum, float token_sum, float stop_votes) {
  double squares = 0;
  for (float& value : gradient) {
    value /= token_sum;
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return {static_cast<double>(loss_sum) / static_cast<double>(token_sum), static_cast<double>(token_sum),
          std::sqrt(squares), stop_votes > 0};
}

inline std::size_t count_targets(std::span<const byte_span> sequences, std::size_t window) {
  std::size_t count = 0;
  for (const byte_span sequence : sequences) count += sequence.size() - window;
  return count;
}

}  // namespace detail

/// Adds floats, a whole microbatch at a time.
class float_gradient_sum {
 public:
  explicit float_gradient_sum(std::size_t parameters) : values_(parameters + detail::further_numbers) {}

  void clear() { std::fill(values_.begin(), values_.end(), 0.0F); }

  /// Adds one microbatch of this rank.
  void add(model& network, std::span<const byte_span> sequences) {
    const double loss = network.add_gradient(sequences, gradient());
    further(detail::loss) += static_cast<float>(loss);
    further(detail::tokens) += static_cast<float>(detail::count_targets(sequences, network.window()));
  }

  void vote_to_stop() { further(detail::stop) = 1; }

  /// Adds up the ranks' sums. Collective.
  template <typename Comm>
  void all_reduce(Comm& comm) {
    hocket::all_reduce(comm, hocket::in_place(std::span(values_)), std::plus<>{});
  }

  /// Call after `all_reduce`.
  step_total finish() {
    return detail::finish(gradient(), further(detail::loss), further(detail::tokens), further(detail::stop));
  }

  /// The mean gradient, after `finish`.
  std::span<float> gradient() { return std::span(values_).first(values_.size() - detail::further_numbers); }

 private:
  float& further(detail::further which) { return values_[values_.size() - detail::further_numbers + which]; }

  std::vector<float> values_;
};

/// Adds the sequences' gradients without rounding.
class exact_gradient_sum {
 public:
  explicit exact_gradient_sum(std::size_t parameters)
      : sums_(parameters + detail::further_numbers), sequence_gradient_(parameters) {}

  void clear() { std::fill(sums_.begin(), sums_.end(), hocket::exact_sum<float>{}); }

  /// Adds one microbatch of this rank, sequence by sequence.
  void add(model& network, std::span<const byte_span> sequences) {
    for (const byte_span& sequence : sequences) {
      std::fill(sequence_gradient_.begin(), sequence_gradient_.end(), 0.0F);
      const double loss = network.add_gradient(std::span(&sequence, 1), sequence_gradient_);
      hocket::exact_sum<float>::add(gradient_sums(), sequence_gradient_);
      further(detail::loss).add(static_cast<float>(loss));
      further(detail::tokens).add(static_cast<float>(sequence.size() - network.window()));
    }
  }

  void vote_to_stop() { further(detail::stop).add(1); }

  /// Adds up the ranks' sums. Collective.
  template <typename Comm>
  void all_reduce(Comm& comm) {
    hocket::all_reduce(comm, hocket::in_place(std::span(sums_)), std::plus<>{},
                       hocket::with(hocket::require(hocket::rank_count_invariant)));
  }

  /// Call after `all_reduce`: only here is anything rounded.
  step_total finish() {
    hocket::exact_sum<float>::value(gradient_sums(), sequence_gradient_);
    return detail::finish(gradient(), further(detail::loss).value(), further(detail::tokens).value(),
                          further(detail::stop).value());
  }

  /// The mean gradient, after `finish`.
  std::span<float> gradient() { return sequence_gradient_; }

 private:
  std::span<hocket::exact_sum<float>> gradient_sums() { return std::span(sums_).first(sequence_gradient_.size()); }

  hocket::exact_sum<float>& further(detail::further which) {
    return sums_[sums_.size() - detail::further_numbers + which];
  }

  std::vector<hocket::exact_sum<float>> sums_;
  std::vector<float> sequence_gradient_;  // of one sequence while adding; the mean of all after `finish`
};

}  // namespace language_model
