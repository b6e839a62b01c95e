// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Parameters and gradients of a model in one process, for evaluation and for tests.
#pragma once

#include "memory.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gpt {

class plain_memory final : public training_memory {
 public:
  explicit plain_memory(std::vector<std::vector<float>> parameters)
      : parameters_(std::move(parameters)), gradients_(parameters_.size()) {}

  void set(std::size_t i, std::span<const float> values) override {
    parameters_[i].assign(values.begin(), values.end());
  }
  void fetch(std::size_t, std::size_t) override {}
  void release(std::size_t, std::size_t) override {}
  std::span<const float> weights(std::size_t i) override { return parameters_[i]; }

  void begin_pass(int, int) override {
    for (std::size_t i = 0; i < gradients_.size(); ++i) gradients_[i].assign(parameters_[i].size(), 0);
  }
  void add_gradient(std::size_t i, std::span<const float> gradient) override {
    for (std::size_t at = 0; at < gradient.size(); ++at) gradients_[i][at] += static_cast<double>(gradient[at]);
  }
  void ready(std::size_t) override {}
  void set_overlap(bool) override {}
  void end_pass(double) override {}
  /// Takes no step.
  step_found end_step(double, double) override { return {}; }
  void add_to(hocket::checkpoint::state&) override {}
  void revoke(const std::string&) override {}

  std::size_t bytes() const override { return 0; }
  std::size_t peak_bytes() const override { return 0; }
  std::size_t predicted_bytes() const override { return 0; }
  double predicted_traffic(int, int, std::size_t) const override { return 0; }
  void watch(hocket::observe::registry&) const override {}
  void settle() override {}
  hocket::traffic moved() const override { return {}; }

  std::span<float> parameter(std::size_t i) { return parameters_[i]; }
  std::span<const double> gradient(std::size_t i) const { return gradients_[i]; }

 private:
  std::vector<std::vector<float>> parameters_;
  std::vector<std::vector<double>> gradients_;
};

}  // namespace gpt
