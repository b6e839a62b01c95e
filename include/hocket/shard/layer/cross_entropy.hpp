// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cross entropy of logits that are sharded by the vocabulary along an axis, without gathering them: each rank
/// reduces its columns, and the ranks exchange a maximum and three sums per token. Two collectives forward, none
/// backward.
///
/// With label smoothing s, the target distribution is 1 - s at the target plus s / vocabulary everywhere, over the
/// whole vocabulary and not over the columns of a rank. Source: Shoeybi et al., Megatron-LM (2019); here one collective
/// reduces all sums.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/layer_diagnostics.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/layer/placed_along.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The sums over ranks for one token. Logits are relative to the largest.
template <class T>
struct softmax_sums {
  T exponentials;
  T target;
  T logits;

  friend constexpr softmax_sums operator+(const softmax_sums& a, const softmax_sums& b) noexcept {
    return {a.exponentials + b.exponentials, a.target + b.target, a.logits + b.logits};
  }
};

/// The type in which a rank sums a row. A float sum over 100000 columns would be wrong in its fifth digit.
template <class T>
using running_sum_t = std::conditional_t<std::is_same_v<T, float>, double, T>;

}  // namespace detail

template <class U, class T>
struct is_commutative<std::plus<U>, detail::softmax_sums<T>> : is_commutative<std::plus<U>, T> {};

/// The cross entropy of logits [tokens, vocabulary] that are shard<1> along `Axis`.
template <axis_name Axis>
struct vocabulary_parallel_cross_entropy {
  double label_smoothing = 0;  ///< 0 up to, but not including, 1

  /// Computes the loss of each token, [tokens], invariant along `Axis`. `targets` is [tokens], of integers, invariant
  /// along `Axis`; a token with a negative target does not count: its loss is 0. Throws `invalid_argument` if a target
  /// is not below the size of the vocabulary, or if the smoothing is not in [0, 1). `saved` refers to `logits` and
  /// `targets`, or holds them if they were moved in. `options`: an algorithm, a timeout, a stop token. Losses of
  /// bfloat16 logits are floats, like their sums; for bfloat16 and float, a rank sums its columns in double.
  template <detail::tensor_along<Axis, 2> Logits, detail::tensor_along<Axis, 1> Targets,
            call_options Options = options<>>
    requires detail::is_pass<detail::cross_entropy_forward_call<Axis>, Logits, Targets, Options>
  auto forward(Logits&& logits, Targets&& targets, const Options& options = {},
               const std::source_location& site = std::source_location::current()) const {
    using element_type = std::remove_const_t<typename std::remove_cvref_t<Logits>::element_type>;
    using value_type = detail::sum_type_t<element_type>;
    check(targets, logits.sizes()[1], site);
    auto held_logits = detail::kept(std::forward<Logits>(logits));
    auto held_targets = detail::kept(std::forward<Targets>(targets));
    auto largest =
        convert<Axis, invariant>(apply(maximum_over<"tv->t">(), largest_of_rows, held_logits), options, site);
    auto sums = convert<Axis, invariant>(
        apply<detail::softmax_sums<value_type>>(
            sum_over<"tv,t,t->t">(), sums_of_rows<value_type>{held_logits.part().begin[1], label_smoothing > 0},
            held_logits, entered(held_targets), entered(largest)),
        options, site);
    auto loss =
        apply<value_type>(nonlinear<"t,t->t">(), loss_of_tokens<value_type>{share(held_logits)}, sums, held_targets);
    using saved_type = saved_values<decltype(held_logits), decltype(held_targets), decltype(largest), decltype(sums)>;
    return forward_result<decltype(loss), saved_type>{
        std::move(loss), {std::move(held_logits), std::move(held_targets), std::move(largest), std::move(sums)}};
  }

  /// Computes the gradient of the logits from the gradient of the loss. No communication.
  template <class Saved, detail::tensor_along<Axis, 1> Gradient>
    requires detail::is_pass<detail::cross_entropy_backward_call<Axis>, Saved, Gradient>
  auto backward(const Saved& saved, const Gradient& gradient) const {
    using element_type = std::remove_const_t<typename decltype(saved.logits)::element_type>;
    using value_type = detail::sum_type_t<element_type>;
    return apply<element_type>(nonlinear<"tv,t,t,t,t->tv">(),
                               gradient_of_logits<value_type>{share(saved.logits), saved.logits.part().begin[1]},
                               saved.logits, entered(saved.targets), entered(saved.largest), entered(saved.sums),
                               entered(gradient));
  }

  // Deleted: the template arguments that the compiler prints explain why.
  template <class... Given, auto Why = detail::why_no_pass<detail::cross_entropy_forward_call<Axis>, Given...>()>
  static detail::not_understood forward(const Given&...) = delete;
  template <class... Given, auto Why = detail::why_no_pass<detail::cross_entropy_backward_call<Axis>, Given...>()>
  static detail::not_understood backward(const Given&...) = delete;

  template <class Logits, class Targets, class Largest, class Sums>
  struct saved_values {
    Logits logits;
    Targets targets;
    Largest largest;
    Sums sums;
  };

 private:
  /// The target distribution: the shares at the target and at every entry.
  struct target_shares {
    double at_target;
    double everywhere;
  };

  template <class Logits>
  target_shares share(const Logits& logits) const noexcept {
    return {1 - label_smoothing, label_smoothing / static_cast<double>(logits.sizes()[1])};
  }

  template <class Tensor>
  static auto entered(const Tensor& tensor) {
    return detail::entered<Axis, replicated>(tensor, options<>(), std::source_location());  // no communication
  }

  static constexpr auto largest_of_rows = [](auto logits, auto to) {
    for (std::size_t t = 0; t < logits.extent(0); ++t) {
      for (std::size_t v = 0; v < logits.extent(1); ++v) to(t) = std::max(to(t), logits(t, v));
    }
  };

  template <class Target>
  static constexpr bool is_target(Target target, std::size_t column) noexcept {
    return target >= 0 && static_cast<std::size_t>(target) == column;
  }

  template <class T>
  struct sums_of_rows {
    std::size_t first;  ///< first column of this rank
    bool smooths;

    void operator()(auto logits, auto targets, auto largest, auto to) const {
      for (std::size_t t = 0; t < logits.extent(0); ++t) {
        detail::softmax_sums<detail::running_sum_t<T>> total{};
        for (std::size_t v = 0; v < logits.extent(1); ++v) {
          const T relative = logits(t, v) - largest(t);
          total.exponentials += std::exp(relative);
          if (smooths) total.logits += relative;  // otherwise masked entries, minus infinity, times 0 would be NaN
          if (is_target(targets(t), first + v)) total.target = relative;
        }
        to(t) = {static_cast<T>(total.exponentials), static_cast<T>(total.target), static_cast<T>(total.logits)};
      }
    }
  };

  template <class T>
  struct loss_of_tokens {
    target_shares shares;

    void operator()(auto sums, auto targets, auto to) const {
      for (std::size_t t = 0; t < to.extent(0); ++t) {
        if (targets(t) < 0) continue;
        to(t) = std::log(sums(t).exponentials) - static_cast<T>(shares.at_target) * sums(t).target -
                static_cast<T>(shares.everywhere) * sums(t).logits;
      }
    }
  };

  template <class T>
  struct gradient_of_logits {
    target_shares shares;
    std::size_t first;  ///< first column of this rank

    void operator()(auto logits, auto targets, auto largest, auto sums, auto gradient, auto to) const {
      for (std::size_t t = 0; t < to.extent(0); ++t) {
        if (targets(t) < 0) continue;
        for (std::size_t v = 0; v < to.extent(1); ++v) {
          const T probability = static_cast<T>(std::exp(logits(t, v) - largest(t))) / sums(t).exponentials;
          const T wanted = static_cast<T>(shares.everywhere) +
                           (is_target(targets(t), first + v) ? static_cast<T>(shares.at_target) : T(0));
          to(t, v) = static_cast<typename decltype(to)::value_type>((probability - wanted) * gradient(t));
        }
      }
    }
  };

  template <class Targets>
  void check(const Targets& targets, std::size_t vocabulary, const std::source_location& site) const {
    const error_context here{.operation = "cross_entropy",
                             .rank = detail::checked_mesh(targets.mesh()).rank(),
                             .ranks = targets.mesh().size(),
                             .site = site};
    if (detail::has_nan_bits(label_smoothing) || label_smoothing < 0 || label_smoothing >= 1) {
      raise(errc::invalid_argument,
            detail::concat({"label_smoothing is ", std::to_string(label_smoothing), "; it must be in [0, 1)"}), here);
    }
    for (std::size_t i = 0; i < targets.elements().size(); ++i) {
      const auto target = targets.elements()[i];
      if (target < 0 || static_cast<std::size_t>(target) < vocabulary) continue;
      raise(errc::invalid_argument,
            detail::concat({"target ", i, " of this rank is ", std::to_string(target), ", and the vocabulary has ",
                            vocabulary, " entries: a target must be less than that"}),
            here);
    }
  }
};

HOCKET_END_NAMESPACE
