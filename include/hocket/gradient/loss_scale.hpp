// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Dynamic loss scale, which prevents small gradients from underflowing in a narrow type: the loss is multiplied by the
/// scale, and gradients are divided by it. The scale grows while all gradients are finite. If one is not, the scale
/// shrinks and the step is skipped. It stays within the normal numbers of float, in which losses are multiplied by it: a
/// scale that is infinite there makes every gradient infinite, one that is zero makes every gradient zero.
///
/// @code
/// hocket::loss_scale scale;
/// ...                                                      // backward pass of scale.value() * loss
/// const auto found = hocket::norm(gradients, model);       // equal on all ranks of both, finite or not
/// const double factor = found.step_factor(totals.count * scale.value(), 1.0);  // this step's scale: before update()
/// if (scale.update(found.finite)) optimizer.step(gradients, rate, factor);
/// @endcode
///
/// Source: dynamic loss scaling as in torch.amp (factors, interval) and Megatron-LM (least value, hysteresis).
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>

#include <algorithm>
#include <string>

HOCKET_BEGIN_NAMESPACE

/// How a `loss_scale` begins, grows and shrinks.
struct loss_scale_options {
  double initial = 65536;  ///< first scale, at most `loss_scale::largest`
  double growth = 2;       ///< factor by which the scale grows
  double backoff = 0.5;    ///< factor by which the scale shrinks
  int interval = 2000;     ///< number of consecutive finite steps after which the scale grows
  double least = 1;        ///< lower limit of the scale, at least `loss_scale::smallest`
  int hysteresis = 1;      ///< number of non-finite steps after which the scale shrinks; 1: after each
};

/// State of a loss scale for checkpoints. Equal on all ranks.
struct loss_scale_state {
  double value = 0;       ///< the scale
  int patience = 0;       ///< number of further non-finite steps after which the scale shrinks
  int finite = 0;         ///< number of consecutive finite steps
  long long skipped = 0;  ///< number of skipped steps
};

/// Dynamic loss scale. Equal on all ranks if `update` gets equal arguments on all ranks.
class loss_scale {
 public:
  /// Limits of every scale: the largest power of two that a float represents, and the smallest normal one.
  static constexpr double largest = 0x1p127, smallest = 0x1p-126;

  /// Raises `invalid_argument` for invalid options.
  explicit loss_scale(const loss_scale_options& how = {}) : how_(how), value_(how.initial), patience_(how.hysteresis) {
    check(detail::is_finite(how.initial) && how.initial > 0 && how.initial <= largest,
          "initial must be positive and at most 2^127");
    check(detail::is_finite(how.growth) && how.growth >= 1, "growth must be at least 1");
    check(detail::is_finite(how.backoff) && how.backoff > 0 && how.backoff <= 1,
          "backoff must be above 0 and at most 1");
    check(how.interval >= 1, "interval must be at least 1");
    check(detail::is_finite(how.least) && how.least >= smallest && how.least <= how.initial,
          "least must be at least 2^-126 and at most initial");
    check(how.hysteresis >= 1, "hysteresis must be at least 1");
  }

  /// Returns and sets the whole state, for checkpoints. `restore` raises `invalid_argument` for a state that is
  /// impossible with these options.
  loss_scale_state state() const noexcept { return {value_, patience_, finite_, skipped_}; }
  /// Continues from a state that `state` returned.
  void restore(const loss_scale_state& kept) {
    check(detail::is_finite(kept.value) && kept.value >= how_.least && kept.value <= largest,
          "restore: the value must be at most 2^127 and not below least");
    check(kept.patience <= how_.hysteresis, "restore: patience must be at most hysteresis");
    check(kept.finite >= 0 && kept.finite < how_.interval, "restore: finite must be at least 0 and below interval");
    check(kept.skipped >= 0, "restore: skipped must be at least 0");
    value_ = kept.value;
    patience_ = kept.patience;
    finite_ = kept.finite;
    skipped_ = kept.skipped;
  }

  /// Factor by which the next loss must be multiplied.
  double value() const noexcept { return value_; }
  /// Number of skipped steps.
  long long skipped() const noexcept { return skipped_; }

  /// Adapts the scale to whether the gradient was finite on all ranks. Returns whether the step must be applied.
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
      value_ = std::min(largest, value_ * how_.growth);
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
