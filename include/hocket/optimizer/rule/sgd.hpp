// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Stochastic gradient descent, with or without momentum.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

HOCKET_BEGIN_NAMESPACE

/// g = gradient + weight_decay p;  m = momentum m + g;  p = p - rate (nesterov ? g + momentum m : m)
struct sgd {
  double momentum = 0.9;
  double weight_decay = 0;
  bool nesterov = false;

  static constexpr std::size_t states = 1;
  static constexpr std::array<std::string_view, 1> state_names{"momentum"};

  template <class F>
  struct constants {
    F rate, momentum, weight_decay;
    bool nesterov;
  };

  template <class F>
  constants<F> at(std::uint64_t /*step*/, double learning_rate) const {
    return {static_cast<F>(learning_rate), static_cast<F>(momentum), static_cast<F>(weight_decay), nesterov};
  }

  template <class F>
  static void update(const constants<F>& c, F& parameter, F gradient, const std::array<F*, states>& state) {
    const F all = gradient + c.weight_decay * parameter;
    F& m = *state[0];
    m = c.momentum * m + all;
    parameter -= c.rate * (c.nesterov ? all + c.momentum * m : m);
  }
};

HOCKET_END_NAMESPACE
