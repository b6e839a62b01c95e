// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A small model for the tests of the executor: layers of different widths, y = tanh(W x), one per stage. The loss is
/// the sum of squares of the last layer. Gradients are added twice: in double, and exactly.
#pragma once

#include <hocket/operation/exact_sum.hpp>
#include <hocket/schedule/schedule.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace pipeline_test {

/// Returns a number between -1 and 1, which is a function of the arguments.
inline double number(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9e3779b97f4a7c15U + b * 0xbf58476d1ce4e5b9U + c * 0x94d049bb133111ebU + 1;
  x ^= x >> 31;
  x *= 0xd6e8feb86659fd93U;
  x ^= x >> 29;
  return static_cast<double>(x >> 11) / 4503599627370496. - 1;
}

inline std::size_t width(int boundary) { return 3 + static_cast<std::size_t>(boundary) * 2 % 5; }

/// A layer with two separate gradients. The first layer makes its own input, the last layer computes the loss.
class layer {
 public:
  using input_type = double;
  using output_type = double;

  layer(int index, int stages, int microbatches)
      : index_(index), last_(index + 1 == stages), in_width_(width(index)), out_width_(width(index + 1)),
        weights_(in_width_ * out_width_), gradient_(weights_.size()), exact_(weights_.size()),
        inputs_(static_cast<std::size_t>(microbatches)), outputs_(inputs_.size()), inner_(inputs_.size()) {
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = number(1, static_cast<std::uint64_t>(index), i);
  }

  std::size_t input_size() const { return index_ == 0 ? 0 : in_width_; }
  std::size_t output_size() const { return last_ ? 0 : out_width_; }

  void forward(int microbatch, std::span<const double> in, std::span<double> out) {
    recompute(microbatch, in);
    const std::vector<double>& made = outputs_[static_cast<std::size_t>(microbatch)];
    for (std::size_t o = 0; o < out_width_; ++o) {
      if (last_) loss_ += made[o] * made[o];
      else out[o] = made[o];
    }
  }

  /// Releases the activations that the gradients need.
  void forget(int microbatch) {
    inputs_[static_cast<std::size_t>(microbatch)].clear();
    outputs_[static_cast<std::size_t>(microbatch)].clear();
  }

  /// Recomputes the activations.
  void recompute(int microbatch, std::span<const double> in) {
    const auto m = static_cast<std::size_t>(microbatch);
    if (index_ == 0) {
      inputs_[m].resize(in_width_);
      for (std::size_t i = 0; i < in_width_; ++i) inputs_[m][i] = number(2, m, i);
      in = inputs_[m];
    }
    outputs_[m].assign(out_width_, 0);
    for (std::size_t o = 0; o < out_width_; ++o) {
      double sum = 0;
      for (std::size_t i = 0; i < in_width_; ++i) sum += weights_[o * in_width_ + i] * in[i];
      outputs_[m][o] = std::tanh(sum);
    }
  }

  void input_gradient(int microbatch, std::span<const double> /*in*/, std::span<const double> out_gradient,
                      std::span<double> in_gradient) {
    const auto m = static_cast<std::size_t>(microbatch);
    inner_[m].resize(out_width_);
    for (std::size_t o = 0; o < out_width_; ++o) {
      const double y = outputs_[m].at(o);
      inner_[m][o] = (last_ ? 2 * y : out_gradient[o]) * (1 - y * y);
    }
    for (std::size_t i = 0; i < in_gradient.size(); ++i) {
      in_gradient[i] = 0;
      for (std::size_t o = 0; o < out_width_; ++o) in_gradient[i] += weights_[o * in_width_ + i] * inner_[m][o];
    }
  }

  void weight_gradient(int microbatch, std::span<const double> in, std::span<const double> /*out_gradient*/) {
    const auto m = static_cast<std::size_t>(microbatch);
    if (index_ == 0) in = inputs_[m];
    for (std::size_t o = 0; o < out_width_; ++o) {
      for (std::size_t i = 0; i < in_width_; ++i) {
        gradient_[o * in_width_ + i] += inner_[m][o] * in[i];
        exact_[o * in_width_ + i].add(inner_[m][o] * in[i]);
      }
    }
  }

  double loss() const { return loss_; }
  const std::vector<double>& gradient() const { return gradient_; }
  const std::vector<hocket::exact_sum<double>>& exact() const { return exact_; }

 private:
  int index_;
  bool last_;
  std::size_t in_width_;
  std::size_t out_width_;
  std::vector<double> weights_;
  std::vector<double> gradient_;
  std::vector<hocket::exact_sum<double>> exact_;
  std::vector<std::vector<double>> inputs_;   // by microbatch, of the first stage
  std::vector<std::vector<double>> outputs_;  // by microbatch
  std::vector<std::vector<double>> inner_;    // the gradient before tanh
  double loss_ = 0;
};

/// Runs the whole model on one rank, one microbatch after the other.
inline std::vector<layer> sequential(int stages, int microbatches) {
  std::vector<layer> all;
  for (int s = 0; s < stages; ++s) all.emplace_back(s, stages, microbatches);
  for (int m = 0; m < microbatches; ++m) {
    std::vector<std::vector<double>> between(static_cast<std::size_t>(stages) + 1);
    for (std::size_t s = 0; s < all.size(); ++s) {
      between[s + 1].resize(all[s].output_size());
      all[s].forward(m, between[s], between[s + 1]);
    }
    std::vector<double> gradient;
    for (std::size_t s = all.size(); s-- > 0;) {
      std::vector<double> next(all[s].input_size());
      all[s].input_gradient(m, between[s], gradient, next);
      all[s].weight_gradient(m, between[s], gradient);
      gradient = next;
    }
  }
  return all;
}

/// The layers that a rank holds.
inline std::vector<layer> layers_of(const hocket::plan::pipeline::schedule& plan, int rank) {
  std::vector<layer> own;
  for (int stage = 0; stage < plan.stages(); ++stage) {
    if (plan.placement.holds(rank, stage)) own.emplace_back(stage, plan.stages(), plan.microbatches);
  }
  return own;
}

/// Describes the difference between the gradients of a stage and those of the whole model. Empty if the sums agree to
/// 1e-12 and the exact sums agree in every bit.
inline std::string difference(const std::vector<double>& sums, const std::vector<hocket::exact_sum<double>>& exact,
                              const layer& expected) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double right = expected.gradient()[i];
    if (!(std::abs(sums[i] - right) <= 1e-12 * std::abs(right))) {
      return "gradient " + std::to_string(i) + " is " + std::to_string(sums[i]) + " instead of " +
             std::to_string(right);
    }
    if (exact[i].value() != expected.exact()[i].value()) return "the exact gradient " + std::to_string(i) + " differs";
  }
  return "";
}

}  // namespace pipeline_test
