// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Data-parallel training: every rank holds the whole model, works on its part of each step's batch, and takes the same
/// step from the sum of all ranks' gradients.
///
/// The batch of a step is a function of the seed and of the step's number. Rank r of n takes a contiguous part of it
/// and cuts that part into microbatches. So n processes learn what one process would have learned.
#pragma once

#include "gradient_sum.hpp"
#include "model.hpp"
#include "optimizer.hpp"
#include "text.hpp"

#include <hocket/hocket.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace language_model {

/// All of it must be equal on all ranks.
struct training_options {
  int steps = 800;
  int batch = 32;                ///< sequences in one step's batch, over all ranks
  int microbatches = 2;          ///< parts that each rank cuts its sequences into
  int evaluate_every = 50;       ///< steps between two looks at the held-out text
  float learning_rate = 1e-2F;   ///< the highest one
  std::uint64_t seed = 1;
  double seconds = 100;          ///< the step that is running when so much time has passed is the last
};

/// Bytes predicted per sequence.
inline constexpr std::size_t targets_per_sequence = 64;

struct step_record {
  double loss = 0;
  double gradient_norm = 0;
};

struct held_out_record {
  int step = 0;
  double loss = 0;
};

/// What training reports after each step, and at its end. Times are this rank's.
struct training_record {
  std::vector<step_record> steps;
  std::vector<held_out_record> held_out;
  double tokens = 0;                 ///< bytes predicted by all ranks together
  double seconds = 0;
  double communication_seconds = 0;  ///< in collectives, waiting for other ranks included
};

/// The part of `whole` that rank `rank` of `ranks` works on. Parts differ by at most one in size.
template <typename T>
std::span<const T> part_of(std::span<const T> whole, int rank, int ranks) {
  const auto cut = [&](int i) { return whole.size() * static_cast<std::size_t>(i) / static_cast<std::size_t>(ranks); };
  return whole.subspan(cut(rank), cut(rank + 1) - cut(rank));
}

namespace detail {

inline double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Every `stride`-th sequence.
inline std::vector<byte_span> thinned(std::span<const byte_span> sequences, std::size_t stride) {
  std::vector<byte_span> kept;
  for (std::size_t i = 0; i < sequences.size(); i += stride) kept.push_back(sequences[i]);
  return kept;
}

}  // namespace detail

/// The mean loss over `sequences`, in nats per byte. Collective; every rank computes a part and knows the result.
///
/// Each sequence's loss has a place of its own, which only one rank fills. Adding zeros to it changes nothing, and all
/// ranks then add the places up in the same order: the result does not depend on the number of ranks.
template <typename Comm>
double mean_loss(Comm& comm, model& network, std::span<const byte_span> sequences) {
  std::vector<double> losses(sequences.size());
  const std::span<const byte_span> mine = part_of(sequences, comm.rank(), comm.size());
  const auto first = static_cast<std::size_t>(mine.data() - sequences.data());
  for (std::size_t i = 0; i < mine.size(); ++i) losses[first + i] = network.loss(mine.subspan(i, 1));
  hocket::all_reduce(comm, hocket::in_place(std::span(losses)), std::plus<>{});
  double sum = 0;
  for (const double loss : losses) sum += loss;
  return sum / static_cast<double>(detail::count_targets(sequences, network.window()));
}

/// Adds this rank's part of the batch of `step` to `sum`, microbatch by microbatch.
template <typename Comm, typename Sum>
void add_batch(const Comm& comm, model& network, byte_span text, const training_options& options, int step, Sum& sum) {
  std::vector<byte_span> batch;
  for (int i = 0; i < options.batch; ++i) {
    batch.push_back(draw_sequence(text, network.window(), targets_per_sequence, options.seed,
                                  static_cast<std::uint64_t>(step), static_cast<std::uint64_t>(i)));
  }
  const auto mine = part_of(std::span<const byte_span>(batch), comm.rank(), comm.size());
  for (int i = 0; i < options.microbatches; ++i) {
    const auto microbatch = part_of(mine, i, options.microbatches);
    if (!microbatch.empty()) sum.add(network, microbatch);
  }
}

/// Trains `network`, which must have the same shape on all ranks; rank 0's parameters are where it starts. Collective.
/// @tparam Sum `float_gradient_sum` or `exact_gradient_sum`
/// @param report is called after each step with a `const training_record&`
template <typename Sum, typename Comm, typename Report>
training_record train(Comm& comm, model& network, split_text text, const training_options& options, Report&& report) {
  const std::vector<byte_span> all_held_out =
      consecutive_sequences(text.held_out, network.window(), targets_per_sequence);
  constexpr std::size_t looked_at = 128;
  const std::vector<byte_span> held_out =
      detail::thinned(all_held_out, std::max<std::size_t>(1, all_held_out.size() / looked_at));

  training_record record;
  const auto start = std::chrono::steady_clock::now();
  adam optimizer(network.parameters().size());
  Sum sum(network.parameters().size());
  hocket::broadcast(comm, network.parameters(), hocket::root{0});
  for (int step = 0; step < options.steps; ++step) {
    sum.clear();
    add_batch(comm, network, text.train, options, step, sum);
    if (detail::seconds_since(start) > options.seconds) sum.vote_to_stop();
    const auto before = std::chrono::steady_clock::now();
    sum.all_reduce(comm);
    record.communication_seconds += detail::seconds_since(before);
    const step_total total = sum.finish();
    optimizer.step(network.parameters(), sum.gradient(), learning_rate_at(step, options.steps, options.learning_rate));

    record.steps.push_back({total.loss, total.gradient_norm});
    record.tokens += total.tokens;
    if ((step + 1) % options.evaluate_every == 0 && step + 1 < options.steps) {
      record.held_out.push_back({step + 1, mean_loss(comm, network, held_out)});
    }
    record.seconds = detail::seconds_since(start);
    report(record);
    if (total.stop) break;
  }
  record.held_out.push_back({static_cast<int>(record.steps.size()), mean_loss(comm, network, all_held_out)});
  return record;
}

}  // namespace language_model
