// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Some consecutive layers as a stage of a pipeline: the first stage looks bytes up in the embedding, the last one
/// computes the loss.
///
/// A microbatch is computed in *chunks*: all of its sequences at once, or, where sums are exact, one after the other, as
/// then each sequence's gradient must not depend on which others are with it.
#pragma once

#include "layer.hpp"
#include "mathematics.hpp"
#include "memory.hpp"
#include "shape.hpp"

#include <hocket/operation/exact_sum.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace gpt {

/// The bytes of one microbatch: of each sequence `context` bytes that are looked at, and one more to be predicted.
using microbatch = std::vector<std::span<const std::uint8_t>>;

class stage {
 public:
  using input_type = float;
  using output_type = float;

  /// @param layers those of the stage
  /// @param sequences of each microbatch
  stage(const model_shape& shape, range layers, range blocks, std::size_t first_parameter, training_memory& memory,
        block_sum& sum, int sequences, bool exact)
      : shape_(shape), range_(layers), first_(first_parameter), memory_(memory), sequences_(sequences),
        chunk_(exact ? 1 : sequences) {
    std::size_t next = first_parameter + (is_first() ? 1U : 0U);
    for (int i = 0; i < layers.size(); ++i) {
      layers_.emplace_back(shape, blocks, next, memory, sum);
      next += layers_.back().parameters();
    }
    end_ = next + (is_last() ? 2U : 0U);
  }

  bool is_first() const noexcept { return range_.first == 0; }
  bool is_last() const noexcept { return range_.end == shape_.layers; }
  std::size_t input_size() const noexcept { return is_first() ? 0 : elements(); }
  std::size_t output_size() const noexcept { return is_last() ? 0 : elements(); }

  /// What the next step computes with. Must outlive it.
  void begin_step(const std::vector<microbatch>& batch) {
    batch_ = &batch;
    kept_.resize(batch.size());
    left_ = batch.size();
    loss_ = {};
  }

  /// The sum of the losses of all bytes predicted since `begin_step`, in nats; of the last stage.
  const hocket::exact_sum<double>& loss() const noexcept { return loss_; }

  void forward(int m, std::span<const float> in, std::span<float> out) {
    std::vector<chunk>& kept = kept_[static_cast<std::size_t>(m)];
    kept.resize(static_cast<std::size_t>(sequences_ / chunk_));
    for (std::size_t c = 0; c < kept.size(); ++c) {
      matrix x = is_first() ? looked_up(m, c) : chunk_of(in, c);
      kept[c].layers.resize(layers_.size());
      with_parameters(true, [&](std::size_t i) { x = layers_[i].forward(std::move(x), kept[c].layers[i]); });
      if (is_last()) {
        score(m, c, std::move(x), kept[c]);
      } else {
        std::copy(x.data(), x.data() + x.size(), out.begin() + static_cast<std::ptrdiff_t>(c) * chunk_elements());
      }
    }
  }

  void backward(int m, std::span<const float>, std::span<const float> out_gradient, std::span<float> in_gradient) {
    std::vector<chunk>& kept = kept_[static_cast<std::size_t>(m)];
    --left_;
    for (std::size_t c = 0; c < kept.size(); ++c) {
      const bool last_chunk = left_ == 0 && c + 1 == kept.size();
      matrix gradient = is_last() ? score_backward(kept[c]) : chunk_of(out_gradient, c);
      if (last_chunk && is_last()) ready(end_ - 2, end_);
      with_parameters(false, [&](std::size_t i) {
        gradient = layers_[i].backward(std::move(gradient), kept[c].layers[i]);
        if (last_chunk) ready(layers_[i].first_parameter(), layers_[i].first_parameter() + layers_[i].parameters());
      });
      if (is_first()) {
        looked_up_backward(m, c, gradient);
        if (last_chunk) ready(first_, first_ + 1);
      } else {
        std::copy(gradient.data(), gradient.data() + gradient.size(),
                  in_gradient.begin() + static_cast<std::ptrdiff_t>(c) * chunk_elements());
      }
    }
    kept.clear();
  }

  std::size_t end_parameter() const noexcept { return end_; }

  /// The scores of the byte after the last one of each position of `x`; of the last stage.
  matrix scores_of(const matrix& x) {
    return normalised(x, row_scales(x), memory_.weights(end_ - 2)) *
           matrix_view(memory_.weights(end_ - 1).data(), shape_.width, model_shape::vocabulary);
  }

 private:
  struct chunk {
    std::vector<layer_memory> layers;
    matrix last;                ///< activations in front of the scores
    std::vector<float> scales;  ///< of their normalisation
    matrix scores_gradient;
  };

  std::size_t elements() const noexcept {
    return static_cast<std::size_t>(sequences_ * shape_.context * shape_.width);
  }
  std::ptrdiff_t chunk_elements() const noexcept { return std::ptrdiff_t{chunk_} * shape_.context * shape_.width; }

  matrix chunk_of(std::span<const float> values, std::size_t c) const {
    return matrix_view(values.data() + static_cast<std::ptrdiff_t>(c) * chunk_elements(), Index{chunk_} * shape_.context,
                       shape_.width);
  }

  /// Calls `compute` with each layer, in the order of a pass; fetches the parameters of the next one meanwhile.
  template <class Compute>
  void with_parameters(bool forwards, Compute compute) {
    const std::size_t count = layers_.size();
    const auto number = [&](std::size_t step) { return forwards ? step : count - 1 - step; };
    const auto fetch = [&](std::size_t i) { memory_.fetch(layers_[i].first_parameter(), layers_[i].parameters()); };
    if (count > 0) fetch(number(0));
    for (std::size_t step = 0; step < count; ++step) {
      if (step + 1 < count) fetch(number(step + 1));
      compute(number(step));
      memory_.release(layers_[number(step)].first_parameter(), layers_[number(step)].parameters());
    }
  }

  void ready(std::size_t first, std::size_t end) {
    for (std::size_t i = end; i-- > first;) memory_.ready(i);
  }

  std::span<const std::uint8_t> sequence(int m, std::size_t c, int i) const {
    return (*batch_)[static_cast<std::size_t>(m)][c * static_cast<std::size_t>(chunk_) + static_cast<std::size_t>(i)];
  }

  matrix looked_up(int m, std::size_t c) {
    memory_.fetch(first_, 1);
    const auto table = memory_.weights(first_);
    matrix x(Index{chunk_} * shape_.context, shape_.width);
    for_each_position(m, c, [&](Index row, std::uint8_t byte, std::uint8_t) {
      for (Index i = 0; i < x.cols(); ++i) x(row, i) = table[static_cast<std::size_t>(byte * x.cols() + i)];
    });
    memory_.release(first_, 1);
    return x;
  }

  void looked_up_backward(int m, std::size_t c, const matrix& gradient) {
    matrix table = matrix::Zero(model_shape::vocabulary, shape_.width);
    for_each_position(m, c, [&](Index row, std::uint8_t byte, std::uint8_t) { table.row(byte) += gradient.row(row); });
    memory_.add_gradient(first_, {table.data(), static_cast<std::size_t>(table.size())});
  }

  template <class Visit>
  void for_each_position(int m, std::size_t c, Visit visit) const {
    for (int i = 0; i < chunk_; ++i) {
      const auto bytes = sequence(m, c, i);
      for (int t = 0; t < shape_.context; ++t) {
        const auto at = static_cast<std::size_t>(t);
        visit(Index{i} * shape_.context + t, bytes[at], bytes[at + 1]);
      }
    }
  }

  void score(int m, std::size_t c, matrix x, chunk& kept) {
    memory_.fetch(end_ - 2, 2);
    kept.last = std::move(x);
    kept.scales = row_scales(kept.last);
    kept.scores_gradient = scores_of(kept.last);
    for_each_position(m, c, [&](Index row, std::uint8_t, std::uint8_t target) {
      float* const scores = kept.scores_gradient.data() + row * model_shape::vocabulary;
      const auto wanted = static_cast<double>(scores[target]);
      const double divisor = softmax(scores, model_shape::vocabulary);
      scores[target] -= 1;
      loss_.add(divisor - wanted);
    });
    memory_.release(end_ - 2, 2);
  }

  matrix score_backward(const chunk& kept) {
    memory_.fetch(end_ - 2, 2);
    const auto gain = memory_.weights(end_ - 2);
    const matrix y = normalised(kept.last, kept.scales, gain);
    const matrix dscores = y.transpose() * kept.scores_gradient;
    memory_.add_gradient(end_ - 1, {dscores.data(), static_cast<std::size_t>(dscores.size())});
    const matrix dy = kept.scores_gradient *
                      matrix_view(memory_.weights(end_ - 1).data(), shape_.width, model_shape::vocabulary).transpose();
    matrix dx = matrix::Zero(kept.last.rows(), kept.last.cols());
    std::vector<float> dgain(static_cast<std::size_t>(shape_.width));
    normalised_backward(kept.last, kept.scales, gain, dy, dx, dgain);
    memory_.add_gradient(end_ - 2, dgain);
    memory_.release(end_ - 2, 2);
    return dx;
  }

  model_shape shape_;
  range range_;
  std::size_t first_;
  std::size_t end_ = 0;
  training_memory& memory_;
  int sequences_;
  int chunk_;
  std::vector<layer> layers_;
  const std::vector<microbatch>* batch_ = nullptr;
  std::vector<std::vector<chunk>> kept_;  ///< of each microbatch that is under way
  std::size_t left_ = 0;                  ///< microbatches whose backward pass has not begun
  hocket::exact_sum<double> loss_;
};

}  // namespace gpt
