// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A stage that only checks that its inputs have the expected values, at the beginning and at the end of an action, to
/// detect a buffer that is reused too early.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <thread>

namespace pipeline_test {

class pattern_stage {
 public:
  using input_type = std::uint32_t;
  using output_type = std::uint32_t;

  /// Some actions take up to `most_microseconds`; the others take no time.
  pattern_stage(int index, int stages, std::size_t size, std::uint32_t most_microseconds)
      : index_(index), last_(index + 1 == stages), size_(size), pause_(most_microseconds),
        state_(static_cast<std::uint32_t>(index) + 1) {}

  std::size_t input_size() const { return index_ == 0 ? 0 : size_; }
  std::size_t output_size() const { return last_ ? 0 : size_; }
  int wrong() const { return wrong_; }

  void forward(int m, std::span<const std::uint32_t> in, std::span<std::uint32_t> out) {
    expect(in, activation(index_ - 1, m));
    std::fill(out.begin(), out.end(), activation(index_, m));
    take_time();
    expect(in, activation(index_ - 1, m));
  }
  void input_gradient(int m, std::span<const std::uint32_t> in, std::span<const std::uint32_t> out_gradient,
                      std::span<std::uint32_t> in_gradient) {
    expect(in, activation(index_ - 1, m));
    std::fill(in_gradient.begin(), in_gradient.end(), gradient(index_ - 1, m));
    take_time();
    expect(out_gradient, gradient(index_, m));
  }
  void weight_gradient(int m, std::span<const std::uint32_t> in, std::span<const std::uint32_t> out_gradient) {
    take_time();
    expect(in, activation(index_ - 1, m));
    expect(out_gradient, gradient(index_, m));
  }

 private:
  static std::uint32_t activation(int boundary, int m) { return static_cast<std::uint32_t>(2000 * boundary + 2 * m); }
  static std::uint32_t gradient(int boundary, int m) { return activation(boundary, m) + 1; }

  void expect(std::span<const std::uint32_t> found, std::uint32_t value) {
    wrong_ += static_cast<int>(std::count_if(found.begin(), found.end(), [&](auto each) { return each != value; }));
  }

  void take_time() {
    state_ = state_ * 1664525U + 1013904223U;
    if (pause_ > 0 && state_ >> 30 == 0) std::this_thread::sleep_for(std::chrono::microseconds(state_ % pause_));
  }

  int index_;
  bool last_;
  std::size_t size_;
  std::uint32_t pause_;
  std::uint32_t state_;
  int wrong_ = 0;
};

}  // namespace pipeline_test
