// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gradients of one step, summed over microbatches and ranks while the backward pass still runs.
///
/// The gradient of a mean over tokens is the sum of all tokens' gradients, divided once by their number. An average of
/// the means of microbatches or ranks is different if one has fewer tokens, so the accumulator sends sums and counts. A
/// bucket (parameter_layout.hpp) is launched when the last of its parameters is ready, in the same order on every rank,
/// and makes progress whenever another parameter becomes ready.
///
/// @code
/// auto gradients = hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<1>);
/// for (int m = 0; m < microbatches; ++m) {
///   gradients.begin_microbatch(m, microbatches);
///   for (std::size_t i = layout.parameters(); i-- > 0;) {      // the backward pass
///     add_gradient_of(i, gradients.of(i));
///     gradients.ready(i);
///   }
///   gradients.end_microbatch(sum_of_losses, tokens);
/// }
/// const hocket::gradient_totals totals = gradients.finish();   // sums; divide by totals.count, once
/// @endcode
#pragma once

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/gradient/accumulated_sums.hpp>
#include <hocket/gradient/accumulator_diagnostics.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/layout_agreement.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>
#include <hocket/gradient/reduction.hpp>
#include <hocket/gradient/totals.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory_resource>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Made by `gradients`. `T` is the type of the sums: float, double, or `exact_sum` of one of them.
///
/// **Ranks.** All ranks must use equally many microbatches per step, with each parameter ready at most once in each.
/// Which parameters are ready, in which order and when may differ between ranks. The constructor compares layouts.
/// **Cost.** With n bytes of gradients on p ranks, an all_reduce (stage 0) or a reduce_scatter of n bytes in total per
/// reduction (with `piecewise_reduction` at stage 0, a reduce_scatter, and an all_gather per step); at the end one
/// small all_reduce of one number per parameter and three more.
/// **Memory.** `last_microbatch`: n. Otherwise n at stage 0 and n/p at stages 2 and 3, and the buckets that are
/// computed or in flight: if one is computed after the other, at most `consecutive_bucket_bytes` of the layout's
/// `in_flight` + 1 buckets. With `bucket_order::forward` these are all buckets, because the last computed bucket is
/// sent first. `of` waits until a bucket has completed rather than allocate more.
/// **Threads.** Like the communicator. **Failure.** An error other than `invalid_argument` has ended the communicator;
/// make a new one. An exception from the start of a user-defined reduction also ends the communicator: the other
/// ranks receive its text. After any other failure in the caller's code, `abandon` abandons the step.
template <class T, class When, class Sharding, class Group, class Options, class Reduction>
class gradient_accumulator : private detail::accumulated_sums<T> {
  using sums = detail::accumulated_sums<T>;

 public:
  using value_type = T;
  using sharding = Sharding;
  using group_type = Group;
  /// Whether each rank stores the whole sum over its microbatches.
  static constexpr bool keeps_whole = std::is_same_v<When, last_microbatch_t>;

  /// See `gradients`.
  gradient_accumulator(Group group, parameter_layout layout, Options options, Reduction reduction,
                       std::pmr::memory_resource* memory, const std::source_location& site)
      : sums(std::move(layout), rules, group.shards->rank(), group.shards->size(), memory, site), group_(group),
        options_(std::move(options)), reduction_(std::move(reduction)) {
    detail::check_same_layout(*group_.shards, sums::layout(), bounds(), "gradients", site);
    if constexpr (Group::has_replicas) {
      detail::check_same_layout(*group_.replicas, sums::layout(), bounds(), "gradients", site);
    }
    sums::allocate();
  }

  gradient_accumulator(gradient_accumulator&&) = default;
  /// Not assignable, because buckets in flight must complete before their memory is freed.
  gradient_accumulator& operator=(gradient_accumulator&&) = delete;
  ~gradient_accumulator() override { sums::end_all(); }

  const parameter_layout& layout() const noexcept { return sums::layout(); }  ///< parameters and buckets
  /// This rank's number in `shards()`, and the number of ranks in `shards()`.
  int rank() const noexcept { return sums::rank(); }
  int ranks() const noexcept { return sums::ranks(); }
  /// The communicator of the ranks that share the gradient.
  const auto& shards() const noexcept { return *group_.shards; }
  const Group& group() const noexcept { return group_; }  ///< the ranks

  /// The timeout and the stop token of all calls of the accumulator.
  auto bounds() const { return detail::bounds_of(options_); }

  /// Returns whether the accumulator sums over exactly the ranks of `comm`.
  template <class Domain>
  bool adds_over(const communicator<Domain>& comm) const {
    const std::vector<int>& own = detail::members_of(*group_.shards);
    if constexpr (Group::has_replicas) {
      return detail::are_all_of(detail::members_of(comm), own, detail::members_of(*group_.replicas));
    } else {
      return detail::are_all_of(detail::members_of(comm), own, {own[static_cast<std::size_t>(rank())]});
    }
  }

  /// Returns whether the accumulator sums over a rank of `comm` other than this one.
  template <class Domain>
  bool adds_over_some_of(const communicator<Domain>& comm) const {
    const std::vector<int>& others = detail::members_of(comm);
    const int self = others[static_cast<std::size_t>(comm.rank())];
    if constexpr (Group::has_replicas) {
      if (detail::share_another(detail::members_of(*group_.replicas), others, self)) return true;
    }
    return detail::share_another(detail::members_of(*group_.shards), others, self);
  }

  /// Begins microbatch `index`, from 0, of the `microbatches` of this step. Microbatch 0 begins a new step.
  void begin_microbatch(int index, int microbatches) { sums::begin_microbatch(index, microbatches); }

  /// Returns the memory to which the caller must add the gradient of parameter `i` before `ready(i)`. Zero at first.
  /// Waits while the parameter's bucket of the preceding microbatch is in flight.
  std::span<T> of(std::size_t i) { return sums::of(i); }

  /// Adds `gradient` to the gradient of parameter `i`: an alternative to `of(i)` for a gradient in other memory, or for
  /// exact sums. Its element type must not have more digits than the type of the sums.
  template <detail::added_to_sums_of<T> Range>
  void add(std::size_t i, const Range& range) {
    const auto gradient = detail::as_input(range);
    const std::span<T> to = of(i);
    if (gradient.size() != to.size()) sums::refuse_size(i, gradient.size());
    for (std::size_t at = 0; at < to.size(); ++at) {
      if constexpr (std::is_arithmetic_v<T>) {
        to[at] += static_cast<T>(gradient[at]);
      } else {
        to[at].add(gradient[at]);
      }
    }
  }

  /// Deleted: the template argument `Why` is the reason.
  template <class Given, auto Why = detail::why_not_added<T, Given>()>
  detail::not_understood add(std::size_t, const Given&) = delete;

  /// Marks the gradient of parameter `i` as complete for this microbatch. Also makes progress on buckets in flight.
  void ready(std::size_t i) { sums::ready(i); }

  /// Makes progress on buckets in flight; for long computations between two parameters. Does not block.
  void progress() { sums::progress(); }

  /// Ends the microbatch. Completes all parameters that were not ready: their gradient is what was added, or else zero.
  /// @param loss sum, not mean, of the microbatch's losses
  /// @param count number of tokens or samples in that sum
  void end_microbatch(double loss, double count) { sums::end_microbatch(loss, count); }

  /// Waits for all buckets and returns the sums of the step. Then `result` is this rank's part of the gradient.
  /// Collective.
  gradient_totals finish() { return sums::finish(); }

  /// Like `finish`, but does not wait for buckets in flight. `wait` waits for one bucket, `norm` for all buckets, and
  /// `optimizer::step` for one bucket after the other, in the order in which the next forward pass needs them, which is
  /// also the order of `bucket_order::forward`. Afterwards `totals` includes the time of these waits. With replicas, or
  /// if pieces are gathered, does the same as `finish`. Collective.
  gradient_totals finish_counts() { return sums::finish_counts(); }

  /// Waits until the sum of bucket `b` is complete.
  void wait(std::size_t b) { sums::wait(b); }

  /// The result of the last call of `finish` or `finish_counts`, with the time of waits since then.
  const gradient_totals& totals() const noexcept { return sums::totals(); }

  /// Abandons a step that can't be completed, for example after an exception in a layer, so that the next can begin.
  /// Sends this rank's remaining contributions, without further gradients, and waits for those of the other ranks.
  ///
  /// Collective, in place of `finish`: each rank calls one of the two. On all ranks the step then has no gradient:
  /// `gradient_totals::abandoned` is the number of ranks that abandoned it, `norm` is not a number, also on the ranks
  /// of the model over which it is computed, and `optimizer::step` raises an error.
  ///
  /// With parameters of zero<3>, which are gathered while gradients are sent, the rank must complete the step with the
  /// other ranks first, without computing: it calls `hold`, `ready` and `end_hold` for each remaining layer, and begins
  /// and ends the remaining microbatches. Otherwise the ranks wait for each other's pieces.
  ///
  /// If this rank has not begun the step, the call only discards the last gradient, without communication, and other
  /// ranks wait until their deadline. If that can happen, because data are read first, pass the number of microbatches.
  gradient_totals abandon() { return sums::abandon(); }

  /// Like `abandon()`, but also works if this rank has not begun the step. `microbatches` must be equal on all ranks.
  /// A rank that only has no data should not abandon the step: it begins its microbatches and ends them with a count of
  /// 0; with zero<3> it calls `hold`, `ready` and `end_hold` in between, as above.
  gradient_totals abandon(int microbatches) { return sums::abandon(microbatches); }

  /// Returns, after `finish` or `wait(b)`, the part of bucket `b` of which this rank has the sum: the whole bucket at
  /// stage 0, otherwise a piece.
  std::span<T> result(std::size_t b) noexcept { return sums::result(b); }
  /// The range of `result(b)` in the layout.
  const element_range& own_range(std::size_t b) const noexcept { return sums::own_range(b); }

  /// Raises `invalid_argument` before `finish`. For functions that use results.
  void check_finished(const char* call) const { sums::check_finished(call); }
  /// Raises `invalid_argument` before `finish`, for an abandoned step, and when called a second time. For optimizers.
  void use() { sums::use(); }

  /// Returns, after `finish`, whether any rank abandoned the step.
  bool abandoned() const noexcept { return sums::abandoned(); }

  /// Returns, after `finish`, whether any rank had a gradient of parameter `i` in any microbatch.
  bool was_used(std::size_t i) const noexcept { return sums::was_used(i); }

 private:
  /// Whether a reduction yields only a piece of the bucket.
  static constexpr bool scatters = Sharding::shards_states || detail::reduces_in_pieces<Reduction>;
  static constexpr detail::accumulation_rules rules{
      .keeps_whole = keeps_whole,
      .keeps_pieces = Sharding::shards_states,
      .scatters = scatters,
      .scatters_before_adding = std::is_same_v<When, scatter_every_reduce_last_t>,
      .has_replicas = Group::has_replicas,
  };

  request begin_within(std::size_t b) override {
    const std::span<T> all = sums::microbatch_gradient(b);
    if constexpr (scatters) {
      return detail::as_request(reduction_.reduce_scatter(*group_.shards, b, all, sums::reduced_part(b),
                                                          counts{sums::lengths(b)}, options_, sums::site()));
    } else {
      return detail::as_request(reduction_.all_reduce(*group_.shards, b, all, options_, sums::site()));
    }
  }

  request begin_across(std::size_t b) override {
    if constexpr (Group::has_replicas) {
      const std::span<T> part = rules.scatters_before_adding ? sums::result(b) : sums::reduced_part(b);
      return detail::as_request(reduction_.all_reduce(*group_.replicas, b, part, options_, sums::site()));
    } else {
      static_cast<void>(b);
      return {};
    }
  }

  request begin_gather(std::size_t b) override {
    if constexpr (rules.gathers()) {
      return all_gather_v_async(*group_.shards, std::span<const T>(sums::reduced_part_of_sums(b)), sums::result(b),
                                counts{sums::lengths(b)}, bounds(), sums::site());
    } else {
      static_cast<void>(b);
      return {};
    }
  }

  void sum_over_ranks(std::span<double> report) override {
    all_reduce(*group_.shards, in_place(report), std::plus<>{}, bounds(), sums::site());
    if constexpr (Group::has_replicas) {
      all_reduce(*group_.replicas, in_place(report), std::plus<>{}, bounds(), sums::site());
    }
  }

  void revoke(const std::string& reason) const override {
    group_.shards->revoke(reason, sums::site());
    if constexpr (Group::has_replicas) group_.replicas->revoke(reason, sums::site());
  }

  std::chrono::nanoseconds timeout() const override {
    return options_.template get<kind::timeout>(timeout_property{group_.shards->timeout()}).duration;
  }

  Group group_;
  Options options_;
  Reduction reduction_;
};

/// Makes an accumulator that sums the gradients of `layout` over microbatches and the ranks of `group`.
///
/// Collective over `group`, a communicator or `hybrid(shards, replicas)`. The group must outlive the result (a
/// temporary does not compile), and have no other calls from `begin_microbatch` to `finish`. Raises `mismatch` on all
/// ranks if their layouts differ, with the first difference.
/// `When` is the time of the reduction, `Sharding` what each rank stores: see policy.hpp for the valid pairs.
/// @tparam T type of the sums: `float` even if a narrower type is sent (`with(wire<bfloat16>)`); or `exact_sum<float>`,
///   for bits that do not depend on the distribution of tokens over microbatches and ranks
/// @param options options of the collectives: an algorithm, a wire type …; a timeout and a stop token also apply to the
///   small sums of `finish` and `norm`
/// @param reduction reduces a bucket: see reduction.hpp
/// @param memory allocates all memory; must outlive the result
template <class T, class Over, class When, class Sharding, class Options = options<>, class Reduction = plain_reduction>
  requires detail::makes_gradients<T, Over, parameter_layout, When, Sharding, Options, Reduction>
auto gradients(Over&& group, parameter_layout layout, When, Sharding, const Options& options = {},
               Reduction reduction = {}, std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
               const std::source_location& site = std::source_location::current()) {
  using group_type = decltype(detail::as_group(group));
  return gradient_accumulator<T, When, Sharding, group_type, Options, Reduction>(
      detail::as_group(group), std::move(layout), options, std::move(reduction), memory, site);
}

/// Deleted: the template argument `Why` is the reason.
template <class T = void, class... Given, auto Why = detail::why_no_gradients<T, Given...>()>
detail::not_understood gradients(Given&&...) = delete;

HOCKET_END_NAMESPACE
