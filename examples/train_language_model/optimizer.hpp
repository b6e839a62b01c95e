// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The optimizer Adam on flat arrays. It uses only arithmetic that IEEE 754 rounds in one way, so ranks that start from
/// equal parameters and are given equal gradients stay equal to the last bit and never exchange parameters again.
#pragma once

#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace language_model {

class adam {
 public:
  explicit adam(std::size_t parameters) : mean_(parameters), square_(parameters) {}

  /// Moves `parameters` against `gradient`, both as long as the constructor was told.
  void step(std::span<float> parameters, std::span<const float> gradient, float learning_rate) {
    mean_power_ *= mean_decay;
    square_power_ *= square_decay;
    const auto rate = static_cast<float>(learning_rate / (1 - mean_power_));
    const auto square_scale = static_cast<float>(1 / (1 - square_power_));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      mean_[i] += static_cast<float>(1 - mean_decay) * (gradient[i] - mean_[i]);
      square_[i] += static_cast<float>(1 - square_decay) * (gradient[i] * gradient[i] - square_[i]);
      parameters[i] -= rate * mean_[i] / (std::sqrt(square_[i] * square_scale) + smallest_root);
    }
  }

 private:
  static constexpr double mean_decay = 0.9;
  static constexpr double square_decay = 0.99;
  static constexpr float smallest_root = 1e-6F;

  std::vector<float> mean_;
  std::vector<float> square_;
  double mean_power_ = 1;
  double square_power_ = 1;
};

/// Rises over the first steps, then falls to a twentieth in a straight line.
inline float learning_rate_at(int step, int steps, float peak) {
  constexpr int warmup = 20;
  if (step < warmup) return peak * static_cast<float>(step + 1) / static_cast<float>(warmup);
  const float done = static_cast<float>(step - warmup) / static_cast<float>(steps - warmup);
  return peak * (1 - 0.95F * done);
}

}  // namespace language_model
