// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gradients of one step, added up over microbatches and ranks, while the backward pass still runs.
///
/// The gradient of a mean over tokens is the sum of all tokens' gradients, divided once by their number. Means of
/// microbatches, or of ranks, averaged, are something else as soon as one has fewer tokens; so sums and counts are what
/// travels here. A bucket (parameter_layout.hpp) starts on its way when the last of its parameters is ready, always in
/// the same order on every rank, and moves on whenever the next parameter is ready.
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

/// Made by `gradients`. `T` is what is added: float, double, or `exact_sum` of one.
///
/// **Ranks.** All ranks must make equal steps: as many microbatches, each parameter ready at most once in each. Which
/// are ready, in which order and when may differ: buckets go in their own order. Layouts are compared when it is made.
/// **Cost.** With n bytes of gradients on p ranks, an all_reduce (stage 0) or a reduce_scatter of n bytes in total each
/// time they are reduced (at stage 0 in pieces, a reduce_scatter and an all_gather each step); at the end one small
/// all_reduce of one number per parameter, and three.
/// **Memory.** `last_microbatch`: n. Else: n at stage 0, n/p at stages 2 and 3, and buckets that are formed or on their
/// way: where one is formed after the other, at most `passing_bytes` of the layout's `in_flight` + 1, but all of them
/// with `bucket_order::forward`, in which the one that is formed last leaves first. When so many are on their way, `of`
/// waits for one before it gives memory for another.
/// **Threads.** As its communicator. **Failure.** What a call throws has ended the communicator, unless it is
/// `invalid_argument`; make a new one. So has what a reduction of the caller's throws where it begins: the other ranks hear
/// its words. After any other failure of the caller's own, `abandon` gives up the step.
template <class T, class When, class Sharding, class Group, class Options, class Reduction>
class gradient_accumulator : private detail::accumulated_sums<T> {
  using sums = detail::accumulated_sums<T>;

 public:
  using value_type = T;
  using sharding = Sharding;
  using group_type = Group;
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
  /// Not assignable: what is on its way must end before its memory does.
  gradient_accumulator& operator=(gradient_accumulator&&) = delete;
  ~gradient_accumulator() override { sums::end_all(); }

  const parameter_layout& layout() const noexcept { return sums::layout(); }
  /// This rank among those that share the gradient, and how many they are.
  int rank() const noexcept { return sums::rank(); }
  int ranks() const noexcept { return sums::ranks(); }
  /// The communicator of these.
  const auto& shards() const noexcept { return *group_.shards; }
  const Group& group() const noexcept { return group_; }

  /// The timeout and the stop token that all of its calls have.
  auto bounds() const { return detail::bounds_of(options_); }

  /// Whether it adds up over the ranks of `comm`, and no others.
  template <class Domain>
  bool adds_over(const communicator<Domain>& comm) const {
    const std::vector<int>& own = detail::members_of(*group_.shards);
    if constexpr (Group::has_replicas) {
      return detail::are_all_of(detail::members_of(comm), own, detail::members_of(*group_.replicas));
    } else {
      return detail::are_all_of(detail::members_of(comm), own, {own[static_cast<std::size_t>(rank())]});
    }
  }

  /// Whether it adds up over another rank of `comm` than this one.
  template <class Domain>
  bool adds_over_some_of(const communicator<Domain>& comm) const {
    const std::vector<int>& others = detail::members_of(comm);
    const int self = others[static_cast<std::size_t>(comm.rank())];
    if constexpr (Group::has_replicas) {
      if (detail::share_another(detail::members_of(*group_.replicas), others, self)) return true;
    }
    return detail::share_another(detail::members_of(*group_.shards), others, self);
  }

  /// Begins microbatch `index`, from 0, of the `microbatches` of this step. The first begins a new step.
  void begin_microbatch(int index, int microbatches) { sums::begin_microbatch(index, microbatches); }

  /// Where the gradient of parameter `i` is to be added, until it is ready. Zero at first. Waits while what lies there
  /// is still on its way from the last microbatch.
  std::span<T> of(std::size_t i) { return sums::of(i); }

  /// Adds `gradient` to that of parameter `i`: `of(i)` for those who have it elsewhere, or add it exactly. Its elements
  /// are of a type that has no more digits than what sums are kept in.
  template <contiguous_buffer Range>
  void add(std::size_t i, const Range& range) {
    const auto gradient = detail::as_input(range);
    static_assert(detail::fits_into<typename decltype(gradient)::value_type, T>(),
                  "gradients.add: an element of this gradient has more digits than what it is added to, and would be "
                  "rounded before: say gradients<double>, or exact_sum<double>, or round it yourself");
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

  /// Does not compile: see what it says.
  template <class Given>
    requires(!contiguous_buffer<Given>)
  auto add(std::size_t, const Given&) {
    constexpr bool is_buffer = contiguous_buffer<Given>;
    static_assert(is_buffer,
                  "gradients.add(i, gradient): the gradient is a contiguous range of numbers, as a vector; a tensor, "
                  "whose type says how it is placed, is added by add_gradient<\"dp\">(gradients, i, tensor)");
    return detail::not_understood();
  }

  /// The gradient of parameter `i` is complete for this microbatch, and may leave. Also moves on what is on its way.
  void ready(std::size_t i) { sums::ready(i); }

  /// Moves on what is on its way; for long computations between two parameters. Does not block.
  void progress() { sums::progress(); }

  /// Ends the microbatch. Parameters that were not ready have no gradient in it: their gradient is what was added, if
  /// anything was, and else zero.
  /// @param loss the sum, not the mean, of its losses
  /// @param count what it is a sum of: tokens, or samples
  void end_microbatch(double loss, double count) { sums::end_microbatch(loss, count); }

  /// Waits for all buckets, and gives what the step adds up to. Then `result` is this rank's share of the sum.
  /// Collective.
  gradient_totals finish() { return sums::finish(); }

  /// The same without the wait: buckets may be on their way still, until `wait` or whoever needs them: `norm` waits for
  /// all of them, `optimizer::step` for one after the other, those first that the next forward pass needs first.
  /// With `bucket_order::forward` these come first too. What they are waited for is in `totals` afterwards. With
  /// replicas, or where pieces are gathered, as `finish`. Collective.
  gradient_totals finish_counts() { return sums::finish_counts(); }

  /// Waits until the sum of bucket `b` is there.
  void wait(std::size_t b) { sums::wait(b); }

  /// What the last call of `finish` gave, with the waits since then.
  const gradient_totals& totals() const noexcept { return sums::totals(); }

  /// Gives up a step that can't be completed, so that the next one can begin: after an exception in a layer. Sends what
  /// the step owes the other ranks, as empty as it is, and waits for theirs.
  ///
  /// Collective, in the place of `finish`: each rank calls either. On all of them the step then has no gradient:
  /// `gradient_totals::abandoned` is how many gave up, `norm` is not a number, also on the ranks of the model that it
  /// is taken with, and an optimizer refuses the step.
  ///
  /// With parameters of zero<3>, which are fetched while gradients leave, a rank that gives up goes through the rest of the
  /// step with the others, without computing: it calls `hold`, `ready` and `let_go` of each layer, and begins and ends the
  /// microbatches that are left, before this. Else they wait for its pieces while it waits for theirs.
  ///
  /// A rank that has not begun the step is between steps: there, this drops the last gradient and calls nobody, and the
  /// others wait for it in vain. Where that may be so, as data are read before, say how many microbatches the step has.
  gradient_totals abandon() { return sums::abandon(); }

  /// The same, whether this rank has begun the step or not: it has `microbatches`, here as on the other ranks.
  /// A rank that merely has no data gives up nothing: it begins its microbatches, and ends them with a count of 0; with
  /// zero<3> it goes through the layers in between, as above.
  gradient_totals abandon(int microbatches) { return sums::abandon(microbatches); }

  /// After `finish`, or `wait(b)`: the part of bucket `b` that this rank has the sum of. All of it at stage 0, else a
  /// piece.
  std::span<T> result(std::size_t b) noexcept { return sums::result(b); }
  /// Where that lies in the layout.
  const element_range& own_range(std::size_t b) const noexcept { return sums::own_range(b); }

  /// For what works on results: refuses before `finish`.
  void check_finished(const char* call) const { sums::check_finished(call); }
  /// For optimizers: the same, and refuses the second time, as one gradient is one step.
  void use() { sums::use(); }

  /// After `finish`: whether any rank gave the step up.
  bool abandoned() const noexcept { return sums::abandoned(); }

  /// After `finish`: whether any rank had a gradient of parameter `i` in any microbatch.
  bool was_used(std::size_t i) const noexcept { return sums::was_used(i); }

 private:
  /// Whether a reduction leaves a piece of the bucket.
  static constexpr bool scatters = Sharding::shards_states || detail::reduces_in_pieces<Reduction>;
  static constexpr detail::accumulation_rules rules{
      .keeps_whole = keeps_whole,
      .keeps_pieces = Sharding::shards_states,
      .scatters = scatters,
      .scatters_before_adding = std::is_same_v<When, scatter_every_reduce_last_t>,
      .has_replicas = Group::has_replicas,
  };

  request begin_within(std::size_t b) override {
    const std::span<T> all = sums::formed(b);
    if constexpr (scatters) {
      return detail::as_request(reduction_.reduce_scatter(*group_.shards, b, all, sums::own(b),
                                                          counts{sums::lengths(b)}, options_, sums::site()));
    } else {
      return detail::as_request(reduction_.all_reduce(*group_.shards, b, all, options_, sums::site()));
    }
  }

  request begin_across(std::size_t b) override {
    if constexpr (Group::has_replicas) {
      const std::span<T> part = rules.scatters_before_adding ? sums::result(b) : sums::own(b);
      return detail::as_request(reduction_.all_reduce(*group_.replicas, b, part, options_, sums::site()));
    } else {
      static_cast<void>(b);
      return {};
    }
  }

  request begin_gather(std::size_t b) override {
    if constexpr (rules.gathers()) {
      return all_gather_v_async(*group_.shards, std::span<const T>(sums::summed(b)), sums::result(b),
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

/// Where the gradients of `layout` are added up, over microbatches and the ranks of `group`.
///
/// Collective over `group`, a communicator, or `hybrid(shards, replicas)`; it must outlive the result (a temporary one
/// does not compile), and carry nothing else from `begin_microbatch` to `finish`. Raises `mismatch` on all ranks if their
/// layouts differ, and says where.
/// @tparam T what is added: `float` even where less travels (`with(wire<bfloat16>)`); or `exact_sum<float>`, for bits
///   that do not depend on how tokens were spread over microbatches and ranks
/// @param when, what when to reduce, and what each rank keeps: see policy.hpp for the pairs that there are
/// @param options those of the collectives: an algorithm, a wire type …; a timeout and a stop token also hold for the
///   small sums of `finish` and `norm`
/// @param reduction what sends a bucket: see reduction.hpp
/// @param memory where all of it is allocated; must outlive the result
template <class T, class Over, class When, class Sharding, class Options = options<>, class Reduction = plain_reduction>
auto gradients(Over&& group, parameter_layout layout, When, Sharding, const Options& options = {},
               Reduction reduction = {}, std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
               const std::source_location& site = std::source_location::current()) {
  using group_type = decltype(detail::group_type_of<Over>());
  if constexpr (detail::checked_group<Over>::value && detail::checked_sum_type<T>::value &&
                detail::checked_options<Options>::value &&
                detail::checked_accumulation<When, Sharding, group_type::has_replicas>::value) {
    if constexpr (detail::checked_wire_type<T, Options>::value &&
                  detail::checked_reduction<Reduction, typename group_type::domain_type, T, Options>::value) {
      return gradient_accumulator<T, When, Sharding, group_type, Options, Reduction>(
          detail::as_group(group), std::move(layout), options, std::move(reduction), memory, site);
    }
  }
}

/// Does not compile: see what it says.
template <class T = void, class... Given>
  requires(std::is_void_v<T> || sizeof...(Given) < 4)
auto gradients(const Given&...) {
  constexpr bool is_whole = !std::is_void_v<T> && sizeof...(Given) >= 4;
  static_assert(
      is_whole,
      "gradients<T>(group, layout, when, stage) needs all of these: what sums are kept in, as float; ranks, a "
      "layout, when to reduce, as last_microbatch, and what is kept, as zero<1>");
  return detail::not_understood();
}

HOCKET_END_NAMESPACE
