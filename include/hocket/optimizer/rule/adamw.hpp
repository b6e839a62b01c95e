// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// AdamW: steps of about the learning rate in each dimension, independent of the size of gradients.
///
/// Source: Loshchilov and Hutter, Decoupled Weight Decay Regularization, 2019.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

HOCKET_BEGIN_NAMESPACE

/// m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2;
/// p = p - rate (m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay p)
struct adamw {
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;

  static constexpr std::size_t states = 2;
  static constexpr std::array<std::string_view, 2> state_names{"first moment", "second moment"};

  template <class F>
  struct constants {
    F rate, keep, beta1, rest1, beta2, rest2, root_scale, epsilon;
  };

  /// Returns the constants of all elements in step `t`, from 1.
  template <class F>
  constants<F> at(std::uint64_t t, double learning_rate) const {
    const auto steps = static_cast<double>(t);
    return {static_cast<F>(learning_rate / (1 - std::pow(beta1, steps))),
            static_cast<F>(1 - learning_rate * weight_decay),
            static_cast<F>(beta1),
            static_cast<F>(1 - beta1),
            static_cast<F>(beta2),
            static_cast<F>(1 - beta2),
            static_cast<F>(1 / std::sqrt(1 - std::pow(beta2, steps))),
            static_cast<F>(epsilon)};
  }

  template <class F>
  static void update(const constants<F>& c, F& parameter, F gradient, const std::array<F*, states>& state) {
    F& m = *state[0];
    F& v = *state[1];
    m = c.beta1 * m + c.rest1 * gradient;
    v = c.beta2 * v + c.rest2 * (gradient * gradient);
    parameter = c.keep * parameter - c.rate * m / (std::sqrt(v) * c.root_scale + c.epsilon);
  }
};

HOCKET_END_NAMESPACE
