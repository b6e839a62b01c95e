// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One step of a rule over the elements of a bucket. It depends only on the rule and on three number types, so
/// optimizers whose parameters or gradients are stored and reduced in different ways share it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/function_view.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Updates contiguous elements in one pass. The arrays must not overlap, so that the compiler can vectorize the loop.
template <class Rule, class F, class P, class T, class Constants>
#if defined(__GNUC__) && !defined(__clang__)
__attribute__((optimize("O3")))
#endif
void update_all(const Constants& constants, std::size_t size, P* parameters, F* masters, const T* gradients,
                double factor, const std::array<F*, Rule::states>& states) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (std::size_t i = 0; i < size; ++i) {
    std::array<F, Rule::states> values{};
    std::array<F*, Rule::states> places{};
    for (std::size_t k = 0; k < Rule::states; ++k) {
      values[k] = states[k][i];
      places[k] = &values[k];
    }
    F value = masters != nullptr ? masters[i] : static_cast<F>(parameters[i]);
    const F gradient = static_cast<F>(static_cast<double>(rounded_sum(gradients[i])) * factor);
    Rule::template update<F>(constants, value, gradient, places);
    for (std::size_t k = 0; k < Rule::states; ++k) states[k][i] = values[k];
    if (masters != nullptr) masters[i] = value;
    parameters[i] = static_cast<P>(value);
  }
}

/// One step of `Rule`, computed in `F`.
template <class Rule, class F>
class rule_step {
 public:
  /// @param number number of the step, from 1
  /// @param factor factor by which gradients are multiplied
  rule_step(const Rule& rule, std::uint64_t number, double learning_rate, double factor)
      : decayed_(rule.template at<F>(number, learning_rate)),
        undecayed_(without_decay(rule).template at<F>(number, learning_rate)), factor_(factor) {}

  /// Updates the elements in the range `own` of bucket `b`, except those of parameters without a gradient. All pointers
  /// refer to the first element of `own`.
  /// @param masters the parameters in `F` if they are narrower; otherwise null
  template <class P, class T>
  HOCKET_NO_INLINE void move(const parameter_layout& layout, std::size_t b, const element_range& own,
                             function_view<bool(std::size_t)> has_gradient, P* parameters, F* masters,
                             const T* gradients, const std::array<F*, Rule::states>& states) const {
    layout.visit_parts(b, own, [&](std::size_t i, const element_range& part) {
      if (!has_gradient(i)) return;
      const std::size_t at = part.first - own.first;
      std::array<F*, Rule::states> here = states;
      for (F*& each : here) each += at;
      update_all<Rule, F>(layout[i].decays ? decayed_ : undecayed_, part.size, parameters + at,
                          masters != nullptr ? masters + at : nullptr, gradients + at, factor_, here);
    });
  }

 private:
  using constants = decltype(std::declval<const Rule&>().template at<F>(std::uint64_t{1}, 0.1));

  /// Returns the rule with a `weight_decay` of 0, if it has that member.
  static Rule without_decay(Rule rule) {
    if constexpr (requires { rule.weight_decay = 0; }) rule.weight_decay = 0;
    return rule;
  }

  constants decayed_;
  constants undecayed_;
  double factor_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
