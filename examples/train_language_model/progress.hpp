// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One line that says how training goes: on a terminal it is rewritten in place, elsewhere a new line comes every few
/// seconds.
#pragma once

#include "training.hpp"

#include <unistd.h>

#include <cstdio>

namespace language_model {

class progress_line {
 public:
  explicit progress_line(int steps) : steps_(steps), on_terminal_(isatty(STDOUT_FILENO) == 1) {}

  void operator()(const training_record& record) {
    const bool last = static_cast<int>(record.steps.size()) == steps_;
    smoothed_loss_ = record.steps.size() == 1 ? record.steps.back().loss
                                              : smoothed_loss_ + 0.1 * (record.steps.back().loss - smoothed_loss_);
    const double interval = on_terminal_ ? 0.1 : 5.0;
    if (!last && record.seconds - shown_at_ < interval) return;
    shown_at_ = record.seconds;
    print(record);
  }

  /// Leaves the line as it is, and goes to the next one.
  void finish() const {
    if (on_terminal_) std::printf("\n");
    std::fflush(stdout);
  }

 private:
  void print(const training_record& record) const {
    std::printf("%sstep %zu/%d  loss %.3f nats/byte", on_terminal_ ? "\r" : "", record.steps.size(), steps_,
                smoothed_loss_);
    if (!record.held_out.empty()) std::printf("  held-out %.3f", record.held_out.back().loss);
    std::printf("  %.0f tokens/s  %.0f %% of time in communication  %.0f s%s", record.tokens / record.seconds,
                100 * record.communication_seconds / record.seconds, record.seconds, on_terminal_ ? "\033[K" : "\n");
    std::fflush(stdout);
  }

  int steps_;
  bool on_terminal_;
  double smoothed_loss_ = 0;
  double shown_at_ = 0;
};

}  // namespace language_model
