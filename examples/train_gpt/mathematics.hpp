// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The functions of a transformer, forward and backward, on matrices with a row per position.
///
/// The bits of their results depend only on their arguments: sums along a row run from left to right, in double, and
/// products use the same block sizes on every machine. So the same sequence gives the same gradient on any rank.
#pragma once

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>

namespace gpt {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using matrix_view = Eigen::Map<const matrix>;
using Eigen::Index;

/// Fixes the block sizes of products. Call it once, before any other function here.
inline void make_products_repeatable() {
  Eigen::setNbThreads(1);
  Eigen::setCpuCacheSizes(32 << 10, 512 << 10, 2 << 20);
}

inline double dot(const float* a, const float* b, Index size) noexcept {
  double sum = 0;
  for (Index i = 0; i < size; ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

// ── Root mean square normalisation ─────────────────────────────────────────────────────────────────────────────────

/// Returns the factor of each row: 1 / sqrt(mean of squares).
inline std::vector<float> row_scales(const matrix& x) {
  std::vector<float> scales;
  for (Index row = 0; row < x.rows(); ++row) {
    const float* const at = x.data() + row * x.cols();
    scales.push_back(static_cast<float>(1 / std::sqrt(dot(at, at, x.cols()) / static_cast<double>(x.cols()) + 1e-6)));
  }
  return scales;
}

inline matrix normalised(const matrix& x, std::span<const float> scales, std::span<const float> gain) {
  matrix y(x.rows(), x.cols());
  for (Index row = 0; row < x.rows(); ++row) {
    for (Index i = 0; i < x.cols(); ++i) {
      y(row, i) = x(row, i) * scales[static_cast<std::size_t>(row)] * gain[static_cast<std::size_t>(i)];
    }
  }
  return y;
}

/// Given the gradient `dy` of the normalised rows, adds the gradient of `x` to `dx` and that of the gain to `dgain`.
inline void normalised_backward(const matrix& x, std::span<const float> scales, std::span<const float> gain,
                                const matrix& dy, matrix& dx, std::vector<float>& dgain) {
  std::vector<float> u(static_cast<std::size_t>(x.cols()));
  for (Index row = 0; row < x.rows(); ++row) {
    const float scale = scales[static_cast<std::size_t>(row)];
    for (Index i = 0; i < x.cols(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      u[at] = dy(row, i) * gain[at];
      dgain[at] += dy(row, i) * x(row, i) * scale;
    }
    const auto along =
        static_cast<float>(dot(u.data(), x.data() + row * x.cols(), x.cols()) / static_cast<double>(x.cols()));
    for (Index i = 0; i < x.cols(); ++i) {
      dx(row, i) += scale * (u[static_cast<std::size_t>(i)] - x(row, i) * scale * scale * along);
    }
  }
}

// ── Rotary positions ───────────────────────────────────────────────────────────────────────────────────────────────

/// Rotates pairs of elements by an angle that grows with the position, so that scores depend on distances.
class rotation {
 public:
  rotation(int positions, int width) : half_(width / 2) {
    for (int position = 0; position < positions; ++position) {
      for (int i = 0; i < half_; ++i) {
        const double angle = position * std::pow(10000.0, -2.0 * i / width);
        cosines_.push_back(static_cast<float>(std::cos(angle)));
        sines_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }

  /// Rotates each row; there is one row per position. `direction` -1 rotates back, which is the gradient.
  void turn(matrix& x, float direction) const {
    for (Index row = 0; row < x.rows(); ++row) {
      for (int i = 0; i < half_; ++i) {
        const auto at = static_cast<std::size_t>(row * half_ + i);
        const float c = cosines_[at], s = sines_[at] * direction;
        const float a = x(row, i), b = x(row, i + half_);
        x(row, i) = a * c - b * s;
        x(row, i + half_) = a * s + b * c;
      }
    }
  }

 private:
  int half_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

// ── Softmax ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Converts the first `count` elements of a row to probabilities. Returns the logarithm of their divisor.
inline double softmax(float* row, Index count) noexcept {
  float highest = row[0];
  for (Index i = 1; i < count; ++i) highest = std::max(highest, row[i]);
  double total = 0;
  for (Index i = 0; i < count; ++i) {
    row[i] = std::exp(row[i] - highest);
    total += static_cast<double>(row[i]);
  }
  for (Index i = 0; i < count; ++i) row[i] = static_cast<float>(static_cast<double>(row[i]) / total);
  return std::log(total) + static_cast<double>(highest);
}

/// Converts row t to probabilities of the positions up to t, and zeros after it.
inline void causal_softmax(matrix& scores) {
  for (Index row = 0; row < scores.rows(); ++row) {
    softmax(scores.data() + row * scores.cols(), row + 1);
    std::fill(scores.data() + row * scores.cols() + row + 1, scores.data() + (row + 1) * scores.cols(), 0.0F);
  }
}

/// Replaces the gradient of the probabilities by that of the scores.
inline void softmax_backward(const matrix& probabilities, matrix& gradient) {
  for (Index row = 0; row < probabilities.rows(); ++row) {
    const float* const p = probabilities.data() + row * probabilities.cols();
    float* const g = gradient.data() + row * gradient.cols();
    const auto along = static_cast<float>(dot(p, g, row + 1));
    for (Index i = 0; i < probabilities.cols(); ++i) g[i] = p[i] * (g[i] - along);
  }
}

}  // namespace gpt
