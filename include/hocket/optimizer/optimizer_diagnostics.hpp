// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which arguments `make_optimizer` and an optimizer's `step` accept, and the compiler's diagnostics for the others: one
/// sentence about the first mistake. Each `why_...` is the template argument of a deleted overload: see
/// core/explanation.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/gradient/totals.hpp>
#include <hocket/optimizer/update_rule.hpp>

#include <concepts>
#include <cstddef>
#include <memory_resource>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// What `make_optimizer` and `step` need of parameters.
template <class Given>
concept optimized_parameters = !std::is_const_v<Given> && requires(Given& parameters) {
  typename Given::value_type;
  typename Given::sharding;
  Given::group_type::has_replicas;
  parameters.own(std::size_t{});
  parameters.gather(std::size_t{});
  parameters.wait(std::size_t{});
};

/// What `step` needs of gradients.
template <class Given>
concept optimizer_gradients = !std::is_const_v<Given> && requires(Given& gradients) {
  typename Given::sharding;
  Given::group_type::has_replicas;
  gradients.use();
  gradients.result(std::size_t{});
};

/// The arguments of `make_optimizer<F>`. The specialization has those that must be passed.
template <class F, class... Given>
struct optimizer_call {
  static consteval sentence explain() {
    return "make_optimizer<F>(parameters, rule) needs all of these: F is the type of the computation, as in "
           "make_optimizer<float>(parameters, adamw{})";
  }
};
template <class F, class Parameters, class Rule, class... Rest>
  requires(!std::is_void_v<F>)
struct optimizer_call<F, Parameters, Rule, Rest...> {
  static consteval sentence explain() {
    using parameters = std::remove_reference_t<Parameters>;
    if constexpr (!std::floating_point<F>) {
      return "make_optimizer<F>(parameters, rule): F must be float or double: integers and narrow floats would lose "
             "most steps; the parameters may be narrower than F";
    } else if constexpr (!optimized_parameters<parameters> || !std::is_lvalue_reference_v<Parameters>) {
      return "make_optimizer(parameters, rule): the parameters must be a named result of parameters<P>(...), which "
             "outlives the optimizer";
    } else if constexpr (!update_rule<std::remove_cvref_t<Rule>, F>) {
      return "make_optimizer(parameters, rule): this is not an update rule: pass adamw{}, sgd{} or lion{}, or a type "
             "with `states`, `at` and `update` that satisfies update_rule";
    } else if (!fits_into<typename parameters::value_type, F>()) {
      return "make_optimizer<F>(parameters, rule): the parameters have more digits than F, and each step would round "
             "them: use the type of the parameters, or a wider one";
    } else if (sizeof...(Rest) > 1 || !(std::is_convertible_v<Rest, std::pmr::memory_resource*> && ...)) {
      return "make_optimizer<F>(parameters, rule, memory): memory must be a std::pmr::memory_resource*, which "
             "allocates the states";
    }
    return {};
  }
};

template <class F, class... Given>
inline constexpr bool makes_optimizer = !optimizer_call<F, Given...>::explain();

template <class F, class... Given>
  requires(!makes_optimizer<F, Given...>)
constexpr auto why_no_optimizer() {
  return make_explanation([] { return optimizer_call<F, Given...>::explain(); });
}

/// Returns the mistake in gradients of a step for `Parameters`.
template <class Parameters, class Gradients>
consteval sentence explain_gradients_of_step() {
  if constexpr (!optimizer_gradients<Gradients>) {
    return "optimizer::step(gradients, learning_rate, factor): the gradients must be a named result of "
           "gradients<T>(...)";
  } else if (!std::is_same_v<typename Gradients::sharding, typename Parameters::sharding>) {
    return "optimizer::step: gradients and parameters have different sharding stages: pass the same zero<stage> to "
           "gradients(...) and parameters(...)";
  } else if (!Gradients::group_type::has_replicas && Parameters::group_type::has_replicas) {
    return "optimizer::step: the parameters have replicas over which the gradients are not summed, so copies would "
           "diverge: also make gradients(...) with hybrid(shards, replicas)";
  }
  return {};
}

/// The arguments of `step` for `Parameters`.
template <class Parameters, class... Given>
struct step_call {
  static consteval sentence explain() {
    return "optimizer::step(gradients, learning_rate, factor) needs all of these: the factor is 1 / totals.count, or "
           "the result of norm(gradients).step_factor(...)";
  }
};
template <class Parameters, class Gradients, class Rate, class Factor>
  requires std::is_convertible_v<Rate, double> && std::is_convertible_v<Factor, double>
struct step_call<Parameters, Gradients, Rate, Factor> {
  static consteval sentence explain() {
    return explain_gradients_of_step<Parameters, std::remove_reference_t<Gradients>>();
  }
};

template <class Parameters, class... Given>
inline constexpr bool is_step = !step_call<Parameters, Given...>::explain();

template <class Parameters, class... Given>
  requires(!is_step<Parameters, Given...>)
constexpr auto why_no_step() {
  return make_explanation([] { return step_call<Parameters, Given...>::explain(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
