// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A pipeline stage of consecutive layers: the first stage applies the embedding to the bytes, the last one computes
/// the loss.
///
/// A microbatch is computed in *chunks*: all of its sequences together, or, if sums are exact, one after the other,
/// because the gradient of a sequence must not depend on the other sequences in its microbatch.
#pragma once

#include "layer.hpp"
#include "mathematics.hpp"
#include "memory.hpp"
#include "shape.hpp"

#include <hocket/operation/exact_sum.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpt {

/// The bytes of one microbatch: `context` bytes of input per sequence, and one more to predict.
using microbatch = std::vector<std::span<const std::uint8_t>>;

class stage {
 public:
  using input_type = float;
  using output_type = float;

  /// @param layers layers of the stage
  /// @param sequences number of sequences per microbatch
  /// @param split whether each sequence is computed alone
  stage(const model_shape& shape, range layers, range blocks, std::size_t first_parameter, training_memory& memory,
        block_sum& sum, int sequences, bool split);

  int layers() const noexcept { return range_.size(); }
  bool is_first() const noexcept { return range_.first == 0; }
  bool is_last() const noexcept { return range_.end == shape_.layers; }
  std::size_t input_size() const { return is_first() ? 0 : elements(); }
  std::size_t output_size() const { return is_last() ? 0 : elements(); }

  /// Resets the losses of the previous step.
  void begin_step() noexcept { loss_ = {}; }
  /// Sets the data of the next pass of the pipeline, which must outlive it.
  /// @param scale factor of the loss before the backward pass
  void begin_pass(const std::vector<microbatch>& batch, float scale = 1);

  /// For tests: makes the next forward pass throw.
  void fail_next(std::string reason) { failure_ = std::move(reason); }

  /// The sum of the losses of all bytes predicted since `begin_step`, in nats; for the last stage only.
  const hocket::exact_sum<double>& loss() const noexcept { return loss_; }

  void forward(int m, std::span<const float> in, std::span<float> out);

  void backward(int m, std::span<const float>, std::span<const float> out_gradient, std::span<float> in_gradient);

  std::size_t end_parameter() const noexcept { return end_; }

  /// Returns the scores of the byte after `position` of a sequence; for a stage that is the whole model.
  std::vector<float> scores_after(std::span<const std::uint8_t> bytes, std::size_t position);

 private:
  struct chunk {
    std::vector<layer_memory> layers;
    matrix last;                ///< activations before the scores
    std::vector<float> scales;  ///< scales of their normalisation
    matrix scores_gradient;
  };

  Index chunk_rows() const noexcept { return Index{chunk_} * shape_.context; }
  /// Number of elements of a chunk, and of a microbatch, that this rank stores between layers.
  std::ptrdiff_t chunk_elements() const { return std::ptrdiff_t{sum_.rows_here(chunk_rows()).size()} * shape_.width; }
  std::size_t elements() const { return static_cast<std::size_t>(sequences_ / chunk_ * chunk_elements()); }

  matrix chunk_of(std::span<const float> values, std::size_t c) const;

  /// Calls `compute` with each layer in the order of a pass, and fetches the parameters of the next layer ahead.
  template <class Compute>
  void with_parameters(bool forwards, Compute compute);

  void ready(std::size_t first, std::size_t end) {
    for (std::size_t i = end; i-- > first;) memory_.ready(i);
  }

  std::span<const std::uint8_t> sequence(int m, std::size_t c, int i) const {
    return (*batch_)[static_cast<std::size_t>(m)][c * static_cast<std::size_t>(chunk_) + static_cast<std::size_t>(i)];
  }

  matrix looked_up(int m, std::size_t c);

  void looked_up_backward(int m, std::size_t c, const matrix& gradient);

  template <class Visit>
  void for_each_position(int m, std::size_t c, Visit visit) const;

  /// Returns the scores of the byte after each position of `x`.
  matrix scores_of(const matrix& x);
  /// Computes scores and losses. `x` has all rows, also with sequence parallelism.
  void score(int m, std::size_t c, matrix x, chunk& kept);

  matrix score_backward(const chunk& kept);

  model_shape shape_;
  range range_;
  std::size_t first_;
  std::size_t end_ = 0;
  training_memory& memory_;
  block_sum& sum_;
  int sequences_;
  int chunk_;
  std::vector<layer> layers_;
  const std::vector<microbatch>* batch_ = nullptr;
  std::vector<std::vector<chunk>> kept_;  ///< by microbatch in flight
  std::size_t left_ = 0;                  ///< microbatches whose backward pass has not begun
  float scale_ = 1;
  std::string failure_;
  hocket::exact_sum<double> loss_;
};

}  // namespace gpt
