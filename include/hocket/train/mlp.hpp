// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Models that need no code: layers of a linear map and, between them, max(0, x). One layer is a linear model.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/train/model.hpp>
#include <hocket/train/samples.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace train {

enum class loss_kind : unsigned char {
  squared_error,  ///< half the sum of squared differences between outputs and targets
  cross_entropy   ///< of the softmax of the outputs; targets are probabilities, such as 1 for the right class
};

/// A multi-layer perceptron.
class mlp {
 public:
  /// `widths` are the number of features, of the outputs of each hidden layer, and of targets. Raises
  /// `invalid_argument` if there are fewer than two, or one is 0.
  mlp(std::string name, std::vector<std::size_t> widths, loss_kind loss = loss_kind::squared_error)
      : name_(std::move(name)), widths_(std::move(widths)), loss_(loss) {
    if (widths_.size() >= 2 && std::find(widths_.begin(), widths_.end(), std::size_t{0}) == widths_.end()) return;
    raise(errc::invalid_argument,
          hocket::detail::concat({"the widths of model '", name_,
                                  "' must be at least two numbers above 0: of features and of "
                                  "targets"}),
          {.operation = "train::mlp"});
  }

  const std::string& name() const noexcept { return name_; }

  /// A matrix for each layer, a row per output, and a number per output.
  std::vector<model_parameter> parameters() const {
    std::vector<model_parameter> result;
    for (std::size_t l = 0; l + 1 < widths_.size(); ++l) {
      const auto inputs = static_cast<double>(widths_[l]);
      result.push_back({hocket::detail::concat({"weights ", l}), widths_[l] * widths_[l + 1], std::sqrt(2 / inputs)});
      result.push_back({hocket::detail::concat({"biases ", l}), widths_[l + 1], 0});
    }
    return result;
  }

  /// Raises `invalid_argument` if samples have other numbers of features or targets than the model.
  double forward(const parameter_values& values, const number_batch& in) {
    require_widths(in);
    const std::size_t layers = widths_.size() - 1;
    outputs_.resize(layers);
    for (std::size_t l = 0; l < layers; ++l) {
      outputs_[l].resize(in.count * widths_[l + 1]);
      for (std::size_t s = 0; s < in.count; ++s) {
        const std::span<const float> x = inputs_of(l, s, in);
        const std::span<float> y = std::span(outputs_[l]).subspan(s * widths_[l + 1], widths_[l + 1]);
        for (std::size_t o = 0; o < y.size(); ++o) {
          float sum = values[2 * l + 1][o];
          const std::span<const float> row = values[2 * l].subspan(o * x.size(), x.size());
          for (std::size_t i = 0; i < x.size(); ++i) sum += row[i] * x[i];
          y[o] = l + 1 < layers ? std::max(0.0F, sum) : sum;
        }
      }
    }
    double sum = 0;
    errors_.resize(outputs_.back().size());
    for (std::size_t s = 0; s < in.count; ++s) sum += loss_of(s, in);
    return sum;
  }

  void backward(const parameter_values& values, const number_batch& in, const parameter_gradients& to) {
    std::vector<float> next;
    for (std::size_t l = widths_.size() - 1; l-- > 0;) {
      const std::size_t inputs = widths_[l], outputs = widths_[l + 1];
      next.assign(l > 0 ? in.count * inputs : 0, 0);
      for (std::size_t s = 0; s < in.count; ++s) {
        const std::span<const float> x = inputs_of(l, s, in);
        for (std::size_t o = 0; o < outputs; ++o) {
          const float error = errors_[s * outputs + o];
          if (error == 0) continue;
          to[2 * l + 1][o] += static_cast<double>(error);
          const std::span<double> row = to[2 * l].subspan(o * inputs, inputs);
          for (std::size_t i = 0; i < inputs; ++i) row[i] += static_cast<double>(error * x[i]);
          if (l == 0) continue;
          const std::span<const float> weights = values[2 * l].subspan(o * inputs, inputs);
          for (std::size_t i = 0; i < inputs; ++i) next[s * inputs + i] += error * weights[i];
        }
        for (std::size_t i = 0; l > 0 && i < inputs; ++i) {
          if (x[i] <= 0) next[s * inputs + i] = 0;  // where max(0, x) is constant
        }
      }
      errors_.swap(next);
    }
  }

 private:
  void require_widths(const number_batch& in) const {
    if (in.features.size() == in.count * widths_.front() && in.targets.size() == in.count * widths_.back()) return;
    raise(errc::invalid_argument,
          hocket::detail::concat({"model '", name_, "' has ", widths_.front(), " features and ", widths_.back(),
                                  " targets, but the samples have ", in.features.size() / in.count, " and ",
                                  in.targets.size() / in.count}),
          {.operation = "train::mlp"});
  }

  std::span<const float> inputs_of(std::size_t layer, std::size_t sample, const number_batch& in) const {
    const std::size_t width = widths_[layer];
    return std::span(layer == 0 ? in.features : outputs_[layer - 1]).subspan(sample * width, width);
  }

  /// Returns the loss of a sample, and sets the errors of its outputs: the gradient of the loss.
  double loss_of(std::size_t sample, const number_batch& in) {
    const std::size_t width = widths_.back();
    const std::span<const float> y = std::span(std::as_const(outputs_.back())).subspan(sample * width, width);
    const std::span<const float> wanted = std::span(in.targets).subspan(sample * width, width);
    const std::span<float> error = std::span(errors_).subspan(sample * width, width);
    double loss = 0;
    if (loss_ == loss_kind::squared_error) {
      for (std::size_t o = 0; o < width; ++o) {
        error[o] = y[o] - wanted[o];
        loss += 0.5 * static_cast<double>(error[o]) * static_cast<double>(error[o]);
      }
      return loss;
    }
    const float greatest = *std::max_element(y.begin(), y.end());
    double sum = 0;
    for (const float each : y) sum += std::exp(static_cast<double>(each - greatest));
    for (std::size_t o = 0; o < width; ++o) {
      const double logarithm = static_cast<double>(y[o] - greatest) - std::log(sum);
      loss -= static_cast<double>(wanted[o]) * logarithm;
      error[o] = static_cast<float>(std::exp(logarithm)) - wanted[o];
    }
    return loss;
  }

  std::string name_;
  std::vector<std::size_t> widths_;
  loss_kind loss_;
  std::vector<std::vector<float>> outputs_;  ///< of each layer, for the samples of the last batch
  std::vector<float> errors_;                ///< of the outputs of the layer that `backward` is at
};

/// A linear model: outputs are sums of the features with weights, and of a constant.
inline mlp linear_model(std::string name, std::size_t features, std::size_t targets,
                        loss_kind loss = loss_kind::squared_error) {
  return mlp(std::move(name), {features, targets}, loss);
}

}  // namespace train
HOCKET_END_NAMESPACE
