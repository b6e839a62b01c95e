// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Applies the optimizer step; each rank updates the shard whose states it stores (ZeRO). In plain data parallelism all
/// ranks compute the same step and store the same states. ZeRO computes and stores each part on one rank, and gathers
/// the updated parameters afterwards.
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
#include <hocket/optimizer/optimizer_diagnostics.hpp>
#include <hocket/optimizer/parameters.hpp>
#include <hocket/optimizer/rule_step.hpp>
#include <hocket/optimizer/state.hpp>
#include <hocket/optimizer/update_rule.hpp>

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

/// Made by `make_optimizer`. Stores states in `F` and, if parameters are narrower, a copy of the parameters in `F`
/// (master weights), so that steps too small for the narrow type accumulate.
///
/// **Memory.** (Rule::states + (P narrower than F)) * sizeof(F) bytes for each element that this rank updates: all at
/// stage 0, otherwise its pieces. **Threads.** Like the parameters' communicator.
template <class F, class Rule, class Parameters>
  requires std::floating_point<F> && update_rule<Rule, F>
class optimizer {
 public:
  using parameter_type = typename Parameters::value_type;
  using sharding = typename Parameters::sharding;
  /// Whether the optimizer stores a copy of the parameters in the wider type `F`.
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

  /// Number of steps so far.
  std::uint64_t steps() const noexcept { return steps_; }

  /// Updates the parameters by the summed gradient times `factor`: 1 / (count * loss scale), times a `clip_factor` if
  /// used. Then starts to gather the parameters, in the order in which the next forward pass needs them;
  /// `parameters.of(i)` waits for parameter i. With zero<3>, releases gathered buckets instead. Parameters without a
  /// gradient on any rank, and their states, remain unchanged. For `undecayed` parameters `weight_decay` is 0.
  ///
  /// Collective; `factor`, `learning_rate` and the rule must be equal on all ranks.
  /// Raises `invalid_argument` if layouts or ranks differ, if `factor` or `learning_rate` is not finite, before `finish`,
  /// for an abandoned step, and for a second step with one gradient.
  template <class Gradients>
    requires detail::is_step<Parameters, Gradients, double, double>
  void step(Gradients& gradients, double learning_rate, double factor) {
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
        parameters_->release(b);  // the gathered values are outdated
      } else {
        parameters_->gather(b);
      }
    }
  }

  /// Deleted: the template argument `Why` is the reason.
  template <class... Given, auto Why = detail::why_no_step<Parameters, Given...>()>
  detail::not_understood step(Given&&...) = delete;

  /// Returns the state that a checkpoint needs in addition to `flat_parameters::state`: the number of steps, the array
  /// "master" if parameters are narrower, and the rule's states by their names. Pieces refer to this object's memory,
  /// and are valid until the next step. Over all ranks of the group, replicas included, each element of each array is
  /// in one piece.
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

  /// Sets the state from `kept`: pieces of `state` from any number of ranks, at any stage, in any order, which may
  /// include more than this rank updates. Restore the parameters, too. Call on all ranks, with equal steps and values.
  /// Raises `invalid_argument` if a part of an array is missing, or if a parameter has another size; then nothing is
  /// changed.
  void restore(const optimizer_state<F>& kept) {
    const detail::state_reader<F> reader(kept.pieces);
    visit_arrays([&](const std::string& array, std::span<F>) {
      for (std::size_t b = 0; b < layout().buckets(); ++b) {
        std::string why = reader.why_bucket_incomplete(array, layout(), b, share_.range(b));
        if (!why.empty()) checks().refuse("restore: " + std::move(why));
      }
    });
    visit_arrays([&](const std::string& array, std::span<F> memory) {
      for (std::size_t b = 0; b < layout().buckets(); ++b) {
        reader.read_bucket(array, layout(), b, share_.range(b), share_.of(memory, b));
      }
    });
    steps_ = kept.steps;
  }

  /// Calls `visit(array, parameter, first, values)` for each part of an array that this rank stores from step to step, as
  /// `flat_parameters::visit_stored` does. A reader must also set `stored_steps`.
  template <class Visit>
  void visit_stored(Visit visit) {
    visit_arrays([&](const std::string& array, std::span<F> memory) {
      for (std::size_t b = 0; b < layout().buckets(); ++b)
        detail::visit_stored_parts(array, layout(), b, share_.range(b), share_.of(memory, b), visit);
    });
  }
  /// The number of steps so far, which a reader of a checkpoint sets.
  std::uint64_t& stored_steps() noexcept { return steps_; }

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

  /// Calls `visit(name, memory)` for each array that is stored from step to step.
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

/// Makes an optimizer for `parameters`, which must outlive the optimizer and must already have their values, because
/// parameters narrower than `F` are copied now.
/// @tparam F type of the computation and of the states: `float` or `double`
/// @param rule `adamw`, `sgd`, `lion`, or a user-defined rule: see `update_rule`
template <class F, class Rule, class Parameters>
  requires detail::makes_optimizer<F, Parameters&, Rule>
auto make_optimizer(Parameters& parameters, const Rule& rule,
                    std::pmr::memory_resource* memory = std::pmr::get_default_resource()) {
  return optimizer<F, Rule, Parameters>(parameters, rule, memory);
}

/// Deleted: the template argument `Why` is the reason.
template <class F = void, class... Given, auto Why = detail::why_no_optimizer<F, Given...>()>
detail::not_understood make_optimizer(Given&&...) = delete;

HOCKET_END_NAMESPACE
