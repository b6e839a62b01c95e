// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The model that all steps of the tutorial train, with loops instead of a library: two blocks, each of which adds the
/// output of its hidden units to its input. Everything here works on one sample and is independent of ranks.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace tutorial {

constexpr std::size_t width = 6;    // numbers in a sample
constexpr std::size_t hidden = 24;  // hidden units of a block
constexpr int samples = 48;         // per step
constexpr int steps = 200;
constexpr double rate = 0.2;

using vector = std::array<double, width>;

/// Returns the output of a block's hidden units: the sum over units of out[unit] * max(0, in[unit] . x). Both have a
/// row per unit; any slice of the units gives its part of the sum.
inline vector units(std::span<const double> in, std::span<const double> out, const vector& x) {
  vector sum{};
  for (std::size_t unit = 0; unit < in.size() / width; ++unit) {
    double h = 0;
    for (std::size_t i = 0; i < width; ++i) h += in[unit * width + i] * x[i];
    for (std::size_t i = 0; h > 0 && i < width; ++i) sum[i] += out[unit * width + i] * h;
  }
  return sum;
}

/// Given the gradient `dy` of that sum, adds to the gradients of `in` and `out`, and returns that of `x`.
inline vector units_backward(std::span<const double> in, std::span<const double> out, const vector& x, const vector& dy,
                             std::span<double> in_gradient, std::span<double> out_gradient) {
  vector dx{};
  for (std::size_t unit = 0; unit < in.size() / width; ++unit) {
    double h = 0, dh = 0;
    for (std::size_t i = 0; i < width; ++i) h += in[unit * width + i] * x[i];
    if (h <= 0) continue;
    for (std::size_t i = 0; i < width; ++i) {
      out_gradient[unit * width + i] += h * dy[i];
      dh += out[unit * width + i] * dy[i];
    }
    for (std::size_t i = 0; i < width; ++i) {
      in_gradient[unit * width + i] += dh * x[i];
      dx[i] += dh * in[unit * width + i];
    }
  }
  return dx;
}

inline vector added(const vector& a, const vector& b) {
  vector sum{};
  for (std::size_t i = 0; i < width; ++i) sum[i] = a[i] + b[i];
  return sum;
}

/// Returns a pseudo-random number between -1 and 1.
inline double noise(std::size_t which) {
  const double x = std::sin(static_cast<double>(which) * 12.9898) * 43758.5453;
  return 2 * (x - std::floor(x)) - 1;
}

/// Returns the initial weights of units from `first` on of a block: part 0 is `in`, part 1 `out`.
inline std::vector<double> first_weights(std::size_t block, std::size_t part, std::size_t first, std::size_t count) {
  std::vector<double> weights(count * width);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = noise(((block * 2 + part) * hidden + first) * width + i + 1) / (part == 0 ? 1.5 : 6);
  }
  return weights;
}

/// Sample `i` of a step; `wanted` is its target.
inline vector sample(int step, int i) {
  vector x{};
  for (std::size_t k = 0; k < width; ++k) {
    x[k] = noise(static_cast<std::size_t>(step * samples + i) * width + k + 7777);
  }
  return x;
}
inline vector wanted(const vector& x) {
  vector y{};
  for (std::size_t k = 0; k < width; ++k) y[k] = std::abs(x[k]) + x[(k + 1) % width] * 0.5;
  return y;
}

/// Returns half the squared distance to the target, and sets `gradient` to its gradient.
inline double loss_of(const vector& y, const vector& target, vector& gradient) {
  double loss = 0;
  for (std::size_t k = 0; k < width; ++k) {
    gradient[k] = y[k] - target[k];
    loss += 0.5 * gradient[k] * gradient[k];
  }
  return loss;
}

}  // namespace tutorial
