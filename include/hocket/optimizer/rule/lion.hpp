// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Lion: steps of exactly the learning rate, by sign only; half of AdamW's memory for states.
///
/// Source: Chen et al., Symbolic Discovery of Optimization Algorithms, 2023.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

HOCKET_BEGIN_NAMESPACE

/// u = sign(beta1 m + (1 - beta1) g);  m = beta2 m + (1 - beta2) g;  p = p - rate (u + weight_decay p)
struct lion {
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;

  static constexpr std::size_t states = 1;
  static constexpr std::array<std::string_view, 1> state_names{"momentum"};

  template <class F>
  struct constants {
    F rate, keep, beta1, rest1, beta2, rest2;
  };

  template <class F>
  constants<F> at(std::uint64_t /*step*/, double learning_rate) const {
    return {static_cast<F>(learning_rate), static_cast<F>(1 - learning_rate * weight_decay),
            static_cast<F>(beta1),         static_cast<F>(1 - beta1),
            static_cast<F>(beta2),         static_cast<F>(1 - beta2)};
  }

  template <class F>
  static void update(const constants<F>& c, F& parameter, F gradient, const std::array<F*, states>& state) {
    F& m = *state[0];
    const F direction = c.beta1 * m + c.rest1 * gradient;
    const F sign = static_cast<F>(direction > 0) - static_cast<F>(direction < 0);
    m = c.beta2 * m + c.rest2 * gradient;
    parameter = c.keep * parameter - c.rate * sign;
  }
};

HOCKET_END_NAMESPACE
