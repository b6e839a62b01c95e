// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A step with a known gradient: microbatches of unequal size, parameters of unequal size, and an unused parameter.
/// Every number is a function of (step, rank, microbatch, parameter, element), of magnitudes from 2^-12 to 2^12.
#pragma once

#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/operation/exact_sum.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hocket_test::gradient {

inline constexpr double magnitude = 4096;
inline constexpr std::size_t never_used = 3;

/// Nine parameters in five buckets, one parameter empty, another larger than a bucket.
inline hocket::parameter_layout small_layout() {
  return hocket::parameter_layout({{"embedding", 700},
                                   {"w0", 129},
                                   {"b0", 1},
                                   {"never", 65},
                                   {"w1", 64},
                                   {"empty", 0},
                                   {"b1", 63},
                                   {"w2", 300},
                                   {"b2", 7}},
                                  {128, 256});
}

struct position {
  int rank = 0;
  int ranks = 1;
  int microbatches = 1;
  int step = 0;
};

inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

/// Returns a number of either sign; magnitudes differ.
inline double number(std::uint64_t which) {
  const std::uint64_t bits = mixed(which + 1);
  const double fraction = static_cast<double>(bits >> 12) / static_cast<double>(std::uint64_t{1} << 52);
  return std::ldexp(2 * fraction - 1, static_cast<int>(bits % 25) - 12);
}

inline double gradient_of(int step, int rank, int microbatch, std::size_t parameter, std::size_t element) {
  return number(
      ((static_cast<std::uint64_t>(step * 64 + rank) * 64 + static_cast<std::uint64_t>(microbatch)) * 64 + parameter) *
          4096 +
      element);
}

/// Number of tokens of a microbatch: unequal, and zero for some.
inline int tokens_of(int rank, int microbatch) { return (rank * 7 + microbatch * 3) % 5; }

template <class T>
double as_double(const T& value) {
  if constexpr (requires { value.value(); }) {
    return static_cast<double>(value.value());
  } else {
    return static_cast<double>(value);
  }
}

template <class Gradients>
auto take_step(Gradients& gradients, const position& at) {
  const hocket::parameter_layout& layout = gradients.layout();
  for (int m = 0; m < at.microbatches; ++m) {
    gradients.begin_microbatch(m, at.microbatches);
    for (std::size_t i = layout.parameters(); i-- > 0;) {
      if (i == never_used) continue;
      using element = typename Gradients::value_type;
      const auto to = gradients.of(i);
      for (std::size_t e = 0; e < to.size(); ++e) {
        to[e] += static_cast<element>(tokens_of(at.rank, m) * gradient_of(at.step, at.rank, m, i, e));
      }
      gradients.ready(i);
    }
    gradients.end_microbatch(tokens_of(at.rank, m) * number(static_cast<std::uint64_t>(at.rank * 64 + m)),
                             tokens_of(at.rank, m));
  }
  return gradients.finish();
}

struct expected_step {
  std::vector<double> gradient;  ///< in the layout's order
  double loss = 0;
  double count = 0;
};

inline expected_step sequential_sum(const hocket::parameter_layout& layout, const position& of) {
  std::vector<hocket::exact_sum<double>> sums(layout.size());
  expected_step expected;
  for (int rank = 0; rank < of.ranks; ++rank) {
    for (int m = 0; m < of.microbatches; ++m) {
      for (std::size_t i = 0; i < layout.parameters(); ++i) {
        for (std::size_t e = 0; i != never_used && e < layout.of(i).size; ++e) {
          sums[layout.of(i).first + e].add(tokens_of(rank, m) * gradient_of(of.step, rank, m, i, e));
        }
      }
      expected.loss += tokens_of(rank, m) * number(static_cast<std::uint64_t>(rank * 64 + m));
      expected.count += tokens_of(rank, m);
    }
  }
  for (const auto& each : sums) expected.gradient.push_back(each.value());
  return expected;
}

// ── The same global batch, distributed in any way ──────────────────────────────────────────────────────────────────

inline constexpr int samples = 40;

inline float sample_gradient(int sample, std::size_t parameter, std::size_t element) {
  return static_cast<float>(gradient_of(1, 0, sample, parameter, element));
}

/// Rank r of n takes a part of the samples, divided into microbatches; each sample's gradient is added exactly.
template <class Gradients>
void take_exact_step(Gradients& gradients, int rank, int ranks, int microbatches) {
  const hocket::parameter_layout& layout = gradients.layout();
  const int parts = ranks * microbatches;
  std::vector<float> one;
  for (int m = 0; m < microbatches; ++m) {
    const int part = rank * microbatches + m;
    gradients.begin_microbatch(m, microbatches);
    for (std::size_t i = layout.parameters(); i-- > 0;) {
      for (int sample = samples * part / parts; sample < samples * (part + 1) / parts; ++sample) {
        one.clear();
        for (std::size_t e = 0; e < layout.of(i).size; ++e) one.push_back(sample_gradient(sample, i, e));
        gradients.add(i, std::span<const float>(one));
      }
      gradients.ready(i);
    }
    gradients.end_microbatch(0, 0);
  }
  gradients.finish();
}

inline std::vector<float> exact_sequential_sum(const hocket::parameter_layout& layout) {
  std::vector<hocket::exact_sum<float>> sums(layout.size());
  for (int sample = samples; sample-- > 0;) {
    for (std::size_t i = 0; i < layout.parameters(); ++i) {
      for (std::size_t e = 0; e < layout.of(i).size; ++e) {
        sums[layout.of(i).first + e].add(sample_gradient(sample, i, e));
      }
    }
  }
  std::vector<float> values;
  for (const auto& each : sums) values.push_back(each.value());
  return values;
}

}  // namespace hocket_test::gradient
