// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The functions of a transformer, forward and backward, on matrices with a row per position.
///
/// The bits of their results depend only on their arguments: sums along a row have an order that is the same for all
/// widths of vectors. So the same sequence gives the same gradient on any rank.
#pragma once

#include "product.hpp"
#include "vectors.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <span>
#include <vector>

namespace gpt {

/// Combines the values of `term` up to `count`: each of 16 lanes from left to right, then the lanes by halves.
template <class Term, class Value, class Combine = std::plus<>>
[[gnu::always_inline]] inline Value reduced(Index count, Term term, Value first, Combine combine = {}) {
  constexpr Index lanes = 16;
  Value values[lanes];
  for (Value& each : values) each = first;
  Index i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (Index lane = 0; lane < lanes; ++lane) values[lane] = combine(values[lane], term(i + lane));
  }
  for (Index lane = 0; i + lane < count; ++lane) values[lane] = combine(values[lane], term(i + lane));
  for (Index half = lanes / 2; half > 0; half /= 2) {
    for (Index lane = 0; lane < half; ++lane) values[lane] = combine(values[lane], values[lane + half]);
  }
  return values[0];
}

/// In double, whose range suffices for the squares of any float: otherwise a diverged model could seem to have a loss.
[[gnu::always_inline]] inline double dot(const float* a, const float* b, Index size) {
  return reduced(
      size, [=](Index i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); }, 0.0);
}

// ── Root mean square normalisation ─────────────────────────────────────────────────────────────────────────────────

/// Returns the factor of each row: 1 / sqrt(mean of squares).
inline std::vector<float> row_scales(const matrix& x) {
  std::vector<float> scales(static_cast<std::size_t>(x.rows()));
  with_vectors([&](auto) {
    for (Index row = 0; row < x.rows(); ++row) {
      const float* const at = x.data() + row * x.cols();
      scales[static_cast<std::size_t>(row)] =
          static_cast<float>(1 / std::sqrt(dot(at, at, x.cols()) / static_cast<double>(x.cols()) + 1e-6));
    }
  });
  return scales;
}

inline matrix normalised(const matrix& x, std::span<const float> scales, std::span<const float> gain) {
  matrix y(x.rows(), x.cols());
  with_vectors([&](auto) {
    for (Index row = 0; row < x.rows(); ++row) {
      const float* const from = x.data() + row * x.cols();
      float* const to = y.data() + row * x.cols();
      const float scale = scales[static_cast<std::size_t>(row)];
      for (Index i = 0; i < x.cols(); ++i) to[i] = from[i] * scale * gain[static_cast<std::size_t>(i)];
    }
  });
  return y;
}

/// Given the gradient `dy` of the normalised rows, adds the gradient of `x` to `dx` and that of the gain to `dgain`.
inline void normalised_backward(const matrix& x, std::span<const float> scales, std::span<const float> gain,
                                const matrix& dy, matrix& dx, std::vector<float>& dgain) {
  std::vector<float> u(gain.size());
  const Index size = x.cols();
  with_vectors([&, to_gain = dgain.data(), by = gain.data(), u = u.data()](auto) {
    for (Index row = 0; row < x.rows(); ++row) {
      const float scale = scales[static_cast<std::size_t>(row)];
      const float* const before = x.data() + row * size;
      const float* const gradient = dy.data() + row * size;
      float* const to = dx.data() + row * size;
      for (Index i = 0; i < size; ++i) {
        u[i] = gradient[i] * by[i];
        to_gain[i] += gradient[i] * before[i] * scale;
      }
      const auto along = static_cast<float>(dot(u, before, size) / static_cast<double>(size));
      for (Index i = 0; i < size; ++i) to[i] += scale * (u[i] - before[i] * scale * scale * along);
    }
  });
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

  /// Rotates the elements from `first` on of each row, whose position is its number modulo the number of positions.
  /// `direction` -1 rotates back, which is the gradient.
  void turn(matrix& x, Index first, float direction) const {
    const auto table = static_cast<Index>(cosines_.size());
    with_vectors([&, half = Index{half_}](auto) {
      for (Index row = 0, at = 0; row < x.rows(); ++row, at = at + half == table ? 0 : at + half) {
        const float* const cosines = cosines_.data() + at;
        const float* const sines = sines_.data() + at;
        float* const a = x.data() + row * x.cols() + first;
        float* const b = a + half;
        for (Index i = 0; i < half; ++i) {
          const float c = cosines[i], s = sines[i] * direction, before = a[i];
          a[i] = before * c - b[i] * s;
          b[i] = before * s + b[i] * c;
        }
      }
    });
  }

 private:
  int half_;
  std::vector<float> cosines_;
  std::vector<float> sines_;
};

// ── Softmax ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns e to the power of `x`, which must be at most 0, to 1e-7 relative, or down to 1e-38. A library's function would
/// be called for each element, and give other bits on other machines.
[[gnu::always_inline]] inline float exponential(float x) {
  x = x < -87.0F ? -87.0F : x;
  constexpr float shift = 0x1.8p23F;  // a sum with it has no fraction, and its integer in the lowest bits
  const float shifted = x * std::numbers::log2e_v<float> + shift;
  const float power = shifted - shift;
  const float r = (x - power * 0x1.63p-1F) + power * 0x1.bd0106p-13F;  // the difference from the power of two
  float sum = 1.9875691500e-4F;                                        // of a polynomial by Moshier (Cephes)
  for (const float next : {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F}) {
    sum = sum * r + next;
  }
  return (sum * r * r + r + 1) * std::bit_cast<float>((std::bit_cast<std::uint32_t>(shifted) << 23) + 0x3f800000U);
}

/// Multiplies the first `count` elements of a row by `scale` and converts them to probabilities. Returns the logarithm
/// of their divisor.
[[gnu::always_inline]] inline double softmax(float* row, Index count, float scale = 1) {
  const auto element = [=](Index i) { return row[i]; };
  const float highest = scale * reduced(count, element, row[0], [](float a, float b) { return a < b ? b : a; });
  for (Index i = 0; i < count; ++i) row[i] = exponential(row[i] * scale - highest);
  const float total = reduced(count, element, 0.0F);
  for (Index i = 0; i < count; ++i) row[i] *= 1 / total;
  return std::log(static_cast<double>(total)) + static_cast<double>(highest);
}

/// Converts the scaled scores of sequences to probabilities: row t of each those of the positions up to t, and zeros
/// after it.
inline void causal_softmax(matrix& scores, float scale) {
  const Index context = scores.cols();
  with_vectors([&](auto) {
    for (Index row = 0; row < scores.rows(); ++row) {
      float* const at = scores.data() + row * context;
      const Index count = row % context + 1;
      softmax(at, count, scale);
      for (Index i = count; i < context; ++i) at[i] = 0;
    }
  });
}

/// Replaces the gradient of the probabilities by that of the scores.
inline void softmax_backward(const matrix& probabilities, matrix& gradient, float scale) {
  const Index context = probabilities.cols();
  with_vectors([&](auto) {
    for (Index row = 0; row < probabilities.rows(); ++row) {
      const float* const p = probabilities.data() + row * context;
      float* const g = gradient.data() + row * context;
      const auto along = static_cast<float>(dot(p, g, row % context + 1));
      for (Index i = 0; i < context; ++i) g[i] = p[i] * (g[i] - along) * scale;
    }
  });
}

}  // namespace gpt
