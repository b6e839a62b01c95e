// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A line with the progress of the training: rewritten in place on a terminal, otherwise printed every few seconds.
#pragma once

#include "training.hpp"

#include <unistd.h>

#include <cstdio>
#include <vector>

namespace gpt {

class progress_line {
 public:
  /// @param bytes_per_step number of bytes that all ranks together predict in a step
  /// @param first number of steps taken before
  progress_line(int steps, int first, double bytes_per_step)
      : steps_(steps), first_(first), bytes_per_step_(bytes_per_step), on_terminal_(isatty(STDOUT_FILENO) == 1) {}

  void operator()(const step_record& step) {
    ++taken_;
    seconds_ += step.seconds;
    communication_seconds_ += step.communication_seconds();
    exposed_seconds_ += step.gradient_seconds;
    smoothed_loss_ = taken_ == 1 ? step.loss : smoothed_loss_ + 0.1 * (step.loss - smoothed_loss_);
    const double interval = on_terminal_ ? 0.1 : 5.0;
    const bool last = step.stop || first_ + taken_ == steps_;
    if (!last && seconds_ - shown_at_ < interval) return;
    shown_at_ = seconds_;
    std::printf(
        "%sstep %d/%d  loss %.3f nats/byte  %.0f bytes/s  %.0f %% of time in communication, %.0f %% exposed "
        "gradients  %.0f s%s",
        on_terminal_ ? "\r" : "", first_ + taken_, steps_, smoothed_loss_, taken_ * bytes_per_step_ / seconds_,
        100 * communication_seconds_ / seconds_, 100 * exposed_seconds_ / seconds_, seconds_,
        on_terminal_ && !last ? " " : "\n");
    std::fflush(stdout);
  }

  double seconds() const noexcept { return seconds_; }
  double communication_share() const noexcept { return communication_seconds_ / seconds_; }

 private:
  int steps_;
  int first_;
  double bytes_per_step_;
  bool on_terminal_;
  int taken_ = 0;
  double smoothed_loss_ = 0;
  double seconds_ = 0;
  double communication_seconds_ = 0;
  double exposed_seconds_ = 0;
  double shown_at_ = 0;
};

}  // namespace gpt
