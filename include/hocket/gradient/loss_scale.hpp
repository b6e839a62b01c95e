// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Keeps small gradients from vanishing in a narrow type: the loss is multiplied by a scale, gradients are divided by
/// it again. As large as it may be: it grows while all gradients are finite, and shrinks when one is not; that step is
/// skipped.
///
/// @code
/// hocket::loss_scale scale;
/// ...                                                      // backward pass of scale.value() * loss
/// const auto found = hocket::norm(gradients, model);       // finite or not: equal on all ranks of both
/// const double factor = found.step_factor(totals.count * scale.value(), 1.0);  // this step's scale: before update()
/// if (scale.update(found.finite)) optimizer.step(gradients, rate, factor);
/// @endcode
///
/// Source: dynamic loss scaling as in torch.amp (factors, interval) and Megatron-LM (least value, hysteresis).
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <algorithm>
#include <cmath>
#include <string>

HOCKET_BEGIN_NAMESPACE

struct loss_scale_options {
  double initial = 65536;
  double growth = 2;
  double backoff = 0.5;
  int interval = 2000;  ///< so many finite steps in a row, and it grows
  double least = 1;     ///< it does not shrink below; positive, as gradients are divided by it
  int hysteresis = 1;   ///< it shrinks at this many steps that were not finite; 1: at each
};

/// What has to be kept of a loss scale so that it can go on: a few numbers, equal on all ranks.
struct loss_scale_state {
  double value = 0;
  int patience = 0;  ///< so many more steps that are not finite, and it shrinks
  int finite = 0;    ///< steps in a row
  long long skipped = 0;
};

/// Equal on all ranks if it is told the same on all.
class loss_scale {
 public:
  /// Raises `invalid_argument` for options that can't be.
  explicit loss_scale(const loss_scale_options& how = {}) : how_(how), value_(how.initial), patience_(how.hysteresis) {
    check(std::isfinite(how.initial) && how.initial > 0, "initial is positive");
    check(std::isfinite(how.growth) && how.growth >= 1, "growth is at least 1");
    check(how.backoff > 0 && how.backoff <= 1, "backoff is above 0 and at most 1");
    check(how.interval >= 1, "interval is at least 1");
    check(how.least > 0 && how.least <= how.initial, "least is positive and at most initial");
    check(how.hysteresis >= 1, "hysteresis is at least 1");
  }

  /// For checkpoints: all of it, and going on from it. `restore` raises `invalid_argument` for what can't have come
  /// from a scale with these options.
  loss_scale_state state() const noexcept { return {value_, patience_, finite_, skipped_}; }
  void restore(const loss_scale_state& kept) {
    check(std::isfinite(kept.value) && kept.value >= how_.least, "restore: the value is finite and not below least");
    check(kept.patience <= how_.hysteresis, "restore: patience is at most hysteresis");
    check(kept.finite >= 0 && kept.finite < how_.interval, "restore: finite is at least 0 and below interval");
    check(kept.skipped >= 0, "restore: skipped is at least 0");
    value_ = kept.value;
    patience_ = kept.patience;
    finite_ = kept.finite;
    skipped_ = kept.skipped;
  }

  /// What the next loss is to be multiplied with.
  double value() const noexcept { return value_; }
  /// Steps that were skipped so far.
  long long skipped() const noexcept { return skipped_; }

  /// Tells whether the step's gradient was finite on all ranks. True if the step is to be taken.
  bool update(bool finite) noexcept {
    if (!finite) {
      ++skipped_;
      finite_ = 0;
      if (--patience_ <= 0) value_ = std::max(how_.least, value_ * how_.backoff);
      return false;
    }
    if (++finite_ == how_.interval) {
      finite_ = 0;
      patience_ = how_.hysteresis;
      if (std::isfinite(value_ * how_.growth)) value_ *= how_.growth;
    }
    return true;
  }

 private:
  static void check(bool holds, const char* rule) {
    if (!holds) raise(errc::invalid_argument, std::string("loss_scale_options: ") + rule);
  }

  loss_scale_options how_;
  double value_;
  int patience_;
  int finite_ = 0;
  long long skipped_ = 0;
};

HOCKET_END_NAMESPACE
