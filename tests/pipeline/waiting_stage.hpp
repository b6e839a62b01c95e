// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A stage that computes nothing. It spends time by a function that the test passes, or throws.
#pragma once

#include <hocket/schedule/costs.hpp>

#include <cstddef>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

namespace pipeline_test {

class waiting_stage {
 public:
  using input_type = std::byte;
  using output_type = std::byte;

  /// `spend(seconds)` lets time pass. Messages between stages have `bytes` bytes.
  waiting_stage(int index, int stages, hocket::plan::pipeline::stage_cost cost, std::function<void(double)> spend,
                std::size_t bytes = 64)
      : index_(index), last_(index + 1 == stages), bytes_(bytes), cost_(cost), spend_(std::move(spend)) {}

  std::size_t input_size() const { return index_ == 0 ? 0 : bytes_; }
  std::size_t output_size() const { return last_ ? 0 : bytes_; }

  /// Makes the forward pass of `microbatch` throw.
  void fail_at(int microbatch) { fails_at_ = microbatch; }

  void forward(int microbatch, std::span<const std::byte>, std::span<std::byte>) {
    if (microbatch == fails_at_) throw std::out_of_range("no such token");
    spend_(cost_.forward);
  }
  void forget(int) {}
  void recompute(int, std::span<const std::byte>) { spend_(cost_.recompute > 0 ? cost_.recompute : cost_.forward); }
  void backward(int, std::span<const std::byte>, std::span<const std::byte>, std::span<std::byte>) {
    spend_(cost_.input_gradient + cost_.weight_gradient);
  }
  void input_gradient(int, std::span<const std::byte>, std::span<const std::byte>, std::span<std::byte>) {
    spend_(cost_.input_gradient);
  }
  void weight_gradient(int, std::span<const std::byte>, std::span<const std::byte>) { spend_(cost_.weight_gradient); }

 private:
  int index_;
  bool last_;
  std::size_t bytes_;
  hocket::plan::pipeline::stage_cost cost_;
  std::function<void(double)> spend_;
  int fails_at_ = -1;
};

}  // namespace pipeline_test
