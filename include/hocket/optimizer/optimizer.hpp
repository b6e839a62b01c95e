// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Takes the step that a gradient says, each rank for the part of the parameters that it keeps the states of. What all
/// ranks computed alike in plain data parallelism, states included, each then computes and keeps once; the parameters
/// go round afterwards.
///
/// @code
/// auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{.weight_decay = 0.1});
/// const auto totals = gradients.finish();
/// optimizer.step(gradients, 3e-4, 1 / totals.count);
/// @endcode
///
/// Source: ZeRO, Rajbhandari et al., 2020.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/flat_buffer.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/layout_share.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>
#include <hocket/gradient/totals.hpp>
#include <hocket/optimizer/optimizer_checks.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule_step.hpp>
#include <hocket/optimizer/state.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// How parameters are moved: a number of states per element, what is the same for all elements of a step, and what is
/// done to one. A member `weight_decay` is taken as 0 for parameters that do not decay; `state_names` are what states
/// are called in checkpoints ("state 0" … otherwise). See optimizer/rule/.
template <class Rule, class F>
concept update_rule = requires(const Rule& rule, F& parameter, F gradient, const std::array<F*, Rule::states>& state) {
  rule.template at<F>(std::uint64_t{1}, 0.1);
  Rule::template update<F>(rule.template at<F>(std::uint64_t{1}, 0.1), parameter, gradient, state);
};

namespace detail {

/// Whether an optimizer computes in `F`, by `Rule`, for parameters of `P`.
template <class F, class Rule, class P>
struct checked_optimizer {
  static constexpr bool is_float = std::floating_point<F>;
  static constexpr bool is_rule = !is_float || update_rule<Rule, F>;
  static constexpr bool is_wide = [] {
    if constexpr (is_float) return fits_into<P, F>();
    return true;
  }();
  static constexpr bool value = is_float && is_rule && is_wide;
  static_assert(is_float,
                "make_optimizer<F>(parameters, rule): F is float or double: integers and narrow floats would lose most "
                "steps; the parameters may be narrower than F");
  static_assert(is_rule,
                "make_optimizer(parameters, rule): this is no rule: say adamw{}, sgd{} or lion{}, or a type with "
                "`states`, `at` and `update`, as update_rule says");
  static_assert(
      !is_rule || is_wide,
      "make_optimizer<F>(parameters, rule): the parameters have more digits than F, and each step would round "
      "them: name their own type, or a wider one");
};

}  // namespace detail

/// Made by `make_optimizer`. States are kept in `F`, and where parameters are narrower, a copy of them in `F` too, so
/// that steps too small for the narrow type add up.
///
/// **Memory.** (Rule::states + (P narrower than F)) * sizeof(F) bytes for each element that this rank updates: all at
/// stage 0, else its pieces. **Threads.** As the parameters' communicator.
template <class F, class Rule, class Parameters>
  requires std::floating_point<F> && update_rule<Rule, F>
class optimizer {
 public:
  using parameter_type = typename Parameters::value_type;
  using sharding = typename Parameters::sharding;
  static constexpr bool has_masters = !std::is_same_v<F, parameter_type>;

  /// See `make_optimizer`.
  optimizer(Parameters& parameters, const Rule& rule, std::pmr::memory_resource* memory)
      : parameters_(&parameters), rule_(rule),
        share_(parameters.layout(), sharding::shards_states, parameters.rank(), parameters.ranks()) {
    for (auto& each : states_) each = flat_buffer<F>(share_.elements(), memory);
    if constexpr (has_masters) {
      masters_ = flat_buffer<F>(share_.elements(), memory);
      for (std::size_t b = 0; b < layout().buckets(); ++b) {
        const auto own = parameters.own(b);
        const auto masters = share_.of(masters_.elements(), b);
        for (std::size_t i = 0; i < own.size(); ++i) masters[i] = static_cast<F>(own[i]);
      }
    }
  }

  /// Steps taken so far.
  std::uint64_t steps() const noexcept { return steps_; }

  /// Moves the parameters by the gradient that `gradients` has the sum of, times `factor`: one divided by the count,
  /// and by the loss scale; times a `clip_factor`. Then begins to send them round, those that the next forward pass
  /// needs first before others; `parameters.of(i)` waits for them. With zero<3>, gathered buckets are released.
  /// Parameters without a gradient on any rank stay as they are, and so do their states. Those that do not decay (see
  /// `undecayed`) are moved as by a rule whose `weight_decay` is 0.
  ///
  /// Collective; `factor`, `learning_rate` and the rule must be equal on all ranks.
  /// Raises `invalid_argument` if layouts or ranks differ, if `factor` or `learning_rate` is not finite, before `finish`,
  /// for a step that was abandoned, and for a second step with one gradient.
  template <class Gradients>
  void step(Gradients& gradients, double learning_rate, double factor) {
    static_assert(std::is_same_v<typename Gradients::sharding, sharding>,
                  "optimizer::step: gradients and parameters are kept in different ways: give gradients(...) and "
                  "parameters(...) the same zero<stage>");
    static_assert(Gradients::group_type::has_replicas || !Parameters::group_type::has_replicas,
                  "optimizer::step: the parameters have replicas which the gradients are not added up over, so copies "
                  "would part: make gradients(...), too, with hybrid(shards, replicas)");
    checks().check_layouts(gradients.layout(), layout());
    check_ranks(*gradients.group().shards, *parameters_->group().shards, "");
    if constexpr (Parameters::group_type::has_replicas) {
      check_ranks(*gradients.group().replicas, *parameters_->group().replicas, " of the replicas");
    }
    checks().check_numbers(learning_rate, factor);
    gradients.use();
    ++steps_;
    const detail::rule_step<Rule, F> this_step(rule_, steps_, learning_rate, factor);
    for (std::size_t b = layout().buckets(); b-- > 0;) {
      gradients.wait(b);
      parameters_->wait(b);
      this_step.move(
          layout(), b, share_.range(b), [&](std::size_t i) { return gradients.was_used(i); },
          parameters_->own(b).data(), has_masters ? share_.of(masters_.elements(), b).data() : nullptr,
          gradients.result(b).data(), states_of(b));
      if constexpr (sharding::shards_parameters) {
        parameters_->release(b);  // what was gathered is not what it was any more
      } else {
        parameters_->gather(b);
      }
    }
  }

  /// Does not compile: see what it says.
  template <class... Given>
    requires(sizeof...(Given) < 3)
  auto step(const Given&...) {
    constexpr bool is_whole = sizeof...(Given) == 3;
    static_assert(
        is_whole,
        "optimizer::step(gradients, learning_rate, factor) needs all of these: the factor is 1 / totals.count, "
        "or what norm(gradients).step_factor(...) gives");
    return detail::not_understood();
  }

  /// All that has to be kept so that training can go on, the parameters apart, which have a `state` of their own: the
  /// steps taken, the array "master" where parameters are narrower, and the states by the names that the rule gives
  /// them. Pieces lie in this object's memory, valid until the next step; over all ranks of the group, replicas
  /// included, each element of each array is in one.
  optimizer_state<F> state() {
    optimizer_state<F> now{steps_, {}};
    visit_arrays([&](const std::string& array, std::span<F> kept) {
      for (std::size_t b = 0; b < layout().buckets(); ++b) {
        detail::add_pieces<F>(now.pieces, array, layout(), b, parameters_->dealt_range(b), share_.range(b),
                              share_.of(kept, b));
      }
    });
    return now;
  }

  /// Goes on from `kept`: pieces of `state` of any number of ranks, at any stage, in any order, also of more than
  /// this rank updates. The parameters are to be restored as well. To be called on all ranks, with equal steps and
  /// values. Raises `invalid_argument` if an array is missing in part, or a parameter has another size; then nothing is
  /// changed.
  void restore(const optimizer_state<F>& kept) {
    const detail::state_reader<F> reader(kept.pieces);
    visit_arrays([&](const std::string& array, std::span<F>) {
      for (std::size_t b = 0; b < layout().buckets(); ++b) {
        std::string why = reader.missing_in(array, layout(), b, share_.range(b));
        if (!why.empty()) checks().refuse("restore: " + std::move(why));
      }
    });
    visit_arrays([&](const std::string& array, std::span<F> memory) {
      for (std::size_t b = 0; b < layout().buckets(); ++b) {
        reader.read_in(array, layout(), b, share_.range(b), share_.of(memory, b));
      }
    });
    steps_ = kept.steps;
  }

 private:
  const parameter_layout& layout() const noexcept { return parameters_->layout(); }

  detail::optimizer_checks checks() const noexcept {
    return detail::optimizer_checks({parameters_->rank(), parameters_->ranks()});
  }
  template <class Domain, class OtherDomain>
  void check_ranks(const communicator<Domain>& of_gradients, const communicator<OtherDomain>& of_parameters,
                   const char* which) const {
    if (detail::same_ranks(of_gradients, of_parameters)) return;
    checks().refuse_ranks({of_gradients.rank(), of_gradients.size()}, {of_parameters.rank(), of_parameters.size()},
                          which);
  }

  /// Calls `visit(name, memory)` for each array that is kept from step to step.
  template <class Visit>
  void visit_arrays(Visit visit) {
    if constexpr (has_masters) visit(std::string("master"), masters_.elements());
    for (std::size_t k = 0; k < Rule::states; ++k) {
      if constexpr (requires { Rule::state_names[k]; }) {
        visit(std::string(Rule::state_names[k]), states_[k].elements());
      } else {
        visit(detail::concat({"state ", k}), states_[k].elements());
      }
    }
  }
  std::array<F*, Rule::states> states_of(std::size_t b) noexcept {
    std::array<F*, Rule::states> states{};
    for (std::size_t k = 0; k < Rule::states; ++k) states[k] = share_.of(states_[k].elements(), b).data();
    return states;
  }

  Parameters* parameters_;
  Rule rule_;
  detail::layout_share share_;
  std::array<flat_buffer<F>, Rule::states> states_;
  flat_buffer<F> masters_;
  std::uint64_t steps_ = 0;
};

/// An optimizer for `parameters`, which must outlive it and have their values: a wider copy is made of them now.
/// @tparam F what it computes in, and keeps its states in: `float` or `double`
/// @param rule `adamw`, `sgd`, `lion`, or one of your own: see `update_rule`
template <class F, class Rule, class Parameters>
auto make_optimizer(Parameters& parameters, const Rule& rule,
                    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  if constexpr (detail::checked_optimizer<F, Rule, typename Parameters::value_type>::value) {
    return optimizer<F, Rule, Parameters>(parameters, rule, memory);
  }
}

/// Does not compile: see what it says.
template <class F = void, class... Given>
  requires(std::is_void_v<F> || sizeof...(Given) < 2)
auto make_optimizer(const Given&...) {
  constexpr bool is_whole = !std::is_void_v<F> && sizeof...(Given) >= 2;
  static_assert(is_whole,
                "make_optimizer<F>(parameters, rule) needs all of these: F is what it computes in, as in "
                "make_optimizer<float>(parameters, adamw{})");
  return detail::not_understood();
}

HOCKET_END_NAMESPACE
