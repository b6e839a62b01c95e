// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A small language model over bytes: the bytes of a window are looked up in an embedding, laid side by side, passed
/// through a hidden layer (tanh) and mapped to the scores of the 256 bytes that may come next.
///
/// All parameters lie in one flat array, and so does their gradient: that is what ranks exchange. The gradient is that
/// of the *sum* of the losses of all predicted bytes, never of a mean: sums of parts add up to the sum of the whole,
/// however the parts are spread over microbatches and ranks.
///
/// The bits of a gradient depend on the parameters and on the sequences passed in one call, and on nothing else. Two
/// things would spoil that and are avoided: Eigen sums and exponentiates a vector differently when its memory starts at
/// an odd place, so such work is done only in matrices that Eigen allocated; and it cuts products by the size of the
/// machine's caches, so that size is fixed here.
#pragma once

#include "text.hpp"

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace language_model {

/// A prediction looks at `window` bytes, each as a vector of `embedding` numbers, through `hidden` units.
struct model_shape {
  int window = 16;
  int embedding = 16;
  int hidden = 256;
};

class model {
 public:
  static constexpr int vocabulary = 256;

  explicit model(model_shape shape) : shape_(shape), parameters_(count_parameters(shape)) {
    Eigen::setNbThreads(1);
    Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 2 << 20);
  }

  const model_shape& shape() const noexcept { return shape_; }
  std::size_t window() const noexcept { return static_cast<std::size_t>(shape_.window); }
  std::span<float> parameters() noexcept { return parameters_; }
  std::span<const float> parameters() const noexcept { return parameters_; }

  /// Random weights, so scaled that activations neither vanish nor saturate. Biases are zero.
  void initialize(std::uint64_t seed) {
    std::fill(parameters_.begin(), parameters_.end(), 0.0F);
    layers<Eigen::Map<matrix>> all(parameters_.data(), shape_);
    randomize(all.embedding, mix(seed ^ 1), 1.0F);
    randomize(all.hidden, mix(seed ^ 2), 1 / std::sqrt(static_cast<float>(input_size())));
    randomize(all.output, mix(seed ^ 3), 1 / std::sqrt(static_cast<float>(shape_.hidden)));
  }

  /// The sum of the losses, in nats, of every predicted byte of `sequences`: each is `window` bytes that are only
  /// looked at, then at least one byte to predict.
  double loss(std::span<const byte_span> sequences) {
    forward(sequences);
    return sum_of_losses();
  }

  /// Adds the gradient of the sum of the losses to `gradient` (as long as `parameters()`), and returns that sum.
  double add_gradient(std::span<const byte_span> sequences, std::span<float> gradient) {
    forward(sequences);
    const double loss = sum_of_losses();
    backward(gradient);
    return loss;
  }

  /// The scores of all bytes to come after `context`, which is `window` bytes long. Valid until the next call.
  std::span<const float> scores(byte_span context) {
    const std::uint8_t unused = 0;
    std::vector<std::uint8_t> bytes(context.begin(), context.end());
    bytes.push_back(unused);
    const byte_span sequence(bytes);
    forward(std::span(&sequence, 1));
    return {scores_.data(), vocabulary};
  }

 private:
  using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// The parameters, or their gradient, as matrices over one flat array. `Map` is a map of `matrix` or `const matrix`.
  template <typename Map>
  struct layers {
    template <typename Float>
    layers(Float* data, model_shape shape)
        : embedding(data, vocabulary, shape.embedding),
          hidden(data + embedding.size(), shape.window * shape.embedding, shape.hidden),
          hidden_bias(hidden.data() + hidden.size(), 1, shape.hidden),
          output(hidden_bias.data() + hidden_bias.size(), shape.hidden, vocabulary),
          output_bias(output.data() + output.size(), 1, vocabulary) {}

    Map embedding;
    Map hidden;
    Map hidden_bias;
    Map output;
    Map output_bias;
  };

  static std::size_t count_parameters(model_shape shape) {
    const auto window = static_cast<std::size_t>(shape.window);
    const auto embedding = static_cast<std::size_t>(shape.embedding);
    const auto hidden = static_cast<std::size_t>(shape.hidden);
    return vocabulary * embedding + (window * embedding + 1) * hidden + (hidden + 1) * vocabulary;
  }

  Eigen::Index input_size() const { return Eigen::Index{shape_.window} * shape_.embedding; }

  static void randomize(Eigen::Map<matrix>& weights, std::uint64_t seed, float deviation) {
    const float half_width = deviation * std::sqrt(3.0F);
    for (Eigen::Index i = 0; i < weights.size(); ++i) {
      const double random = uniform(mix(seed + static_cast<std::uint64_t>(i)));
      weights.data()[i] = static_cast<float>(2 * random - 1) * half_width;
    }
  }

  /// Lists every prediction: what it looks at, and the byte that follows.
  void list_predictions(std::span<const byte_span> sequences) {
    contexts_.clear();
    targets_.clear();
    for (const byte_span sequence : sequences) {
      for (std::size_t i = window(); i < sequence.size(); ++i) {
        contexts_.push_back(sequence.data() + (i - window()));
        targets_.push_back(sequence[i]);
      }
    }
  }

  void forward(std::span<const byte_span> sequences) {
    list_predictions(sequences);
    const layers<Eigen::Map<const matrix>> weights(parameters_.data(), shape_);
    const auto rows = static_cast<Eigen::Index>(targets_.size());
    input_.resize(rows, input_size());
    for (Eigen::Index row = 0; row < rows; ++row) {
      const std::uint8_t* context = contexts_[static_cast<std::size_t>(row)];
      float* out = input_.data() + row * input_size();
      for (int i = 0; i < shape_.window; ++i) {
        out = std::copy_n(weights.embedding.data() + context[i] * shape_.embedding, shape_.embedding, out);
      }
    }
    hidden_.noalias() = input_ * weights.hidden;
    hidden_.rowwise() += weights.hidden_bias.row(0);
    hidden_ = hidden_.array().tanh();
    scores_.noalias() = hidden_ * weights.output;
    scores_.rowwise() += weights.output_bias.row(0);
  }

  /// Turns the scores into probabilities on the way.
  double sum_of_losses() {
    double sum = 0;
    for (Eigen::Index row = 0; row < scores_.rows(); ++row) {
      auto scores = scores_.row(row).array();
      scores -= scores.maxCoeff();
      const float target = scores(targets_[static_cast<std::size_t>(row)]);
      scores = scores.exp();
      const float total = scores.sum();
      sum += std::log(static_cast<double>(total)) - static_cast<double>(target);
      scores /= total;
    }
    return sum;
  }

  /// Expects probabilities in `scores_`.
  void backward(std::span<float> gradient) {
    const layers<Eigen::Map<const matrix>> weights(parameters_.data(), shape_);
    layers<Eigen::Map<matrix>> out(gradient.data(), shape_);
    for (Eigen::Index row = 0; row < scores_.rows(); ++row) {
      scores_(row, targets_[static_cast<std::size_t>(row)]) -= 1;
    }
    out.output.noalias() += hidden_.transpose() * scores_;
    add_rows(scores_, out.output_bias);
    hidden_gradient_.noalias() = scores_ * weights.output.transpose();
    hidden_gradient_.array() *= 1 - hidden_.array().square();
    out.hidden.noalias() += input_.transpose() * hidden_gradient_;
    add_rows(hidden_gradient_, out.hidden_bias);
    input_gradient_.noalias() = hidden_gradient_ * weights.hidden.transpose();
    add_input_gradient(out.embedding);
  }

  static void add_rows(const matrix& from, Eigen::Map<matrix>& sum) {
    for (Eigen::Index row = 0; row < from.rows(); ++row) sum.row(0) += from.row(row);
  }

  void add_input_gradient(Eigen::Map<matrix>& embedding) const {
    for (Eigen::Index row = 0; row < input_gradient_.rows(); ++row) {
      const std::uint8_t* context = contexts_[static_cast<std::size_t>(row)];
      for (Eigen::Index i = 0; i < shape_.window; ++i) {
        embedding.row(context[i]) += input_gradient_.row(row).segment(i * shape_.embedding, shape_.embedding);
      }
    }
  }

  model_shape shape_;
  std::vector<float> parameters_;
  std::vector<const std::uint8_t*> contexts_;
  std::vector<std::uint8_t> targets_;
  matrix input_;
  matrix hidden_;
  matrix scores_;
  matrix hidden_gradient_;
  matrix input_gradient_;
};

}  // namespace language_model
