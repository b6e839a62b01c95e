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

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/flat_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>
#include <hocket/gradient/reduction.hpp>

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory_resource>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// What a step adds up to, over all microbatches and ranks. Equal on all ranks, the times apart.
struct gradient_totals {
  double loss = 0;   ///< sum of what `end_microbatch` was told
  double count = 0;  ///< likewise; what gradients and loss are to be divided by

  /// How long this rank did nothing but wait for other ranks' gradients.
  double exposed_seconds = 0;
  /// How long it moved gradients on in between, while the backward pass waited.
  double driving_seconds = 0;
};

/// Made by `gradients`. `T` is what is added: a floating-point type, or `exact_sum` of one.
///
/// **Ranks.** All ranks must have equal layouts, and make equal steps: as many microbatches, each parameter ready at
/// most once in each. Which are ready, in which order and when may differ: buckets go in their own order.
/// **Cost.** With n bytes of gradients on p ranks, an all_reduce (stage 0) or a reduce_scatter of n bytes in total each
/// time they are reduced; at the end one small all_reduce of p numbers, p being the number of parameters, plus two.
/// **Memory.** `last_microbatch`: n. Else: n at stage 0, n/p at stages 2 and 3, and what is on its way.
/// **Threads.** As its communicator. **Failure.** What a call throws has ended the communicator; make a new one.
template <class T, class When, class Sharding, class Group, class Options, class Reduction>
class gradient_accumulator {
 public:
  using value_type = T;
  using sharding = Sharding;
  static constexpr bool keeps_whole = std::is_same_v<When, last_microbatch_t>;

  /// See `gradients`.
  gradient_accumulator(Group group, parameter_layout layout, Options options, Reduction reduction,
                       std::pmr::memory_resource* memory, const std::source_location& site)
      : group_(group), layout_(std::move(layout)), options_(std::move(options)), reduction_(std::move(reduction)),
        site_(site), memory_(memory), missing_(layout_.buckets()), flying_(layout_.buckets(), false),
        done_(layout_.parameters(), false), report_(layout_.parameters() + 2),
        passing_(keeps_whole ? 0 : layout_.buckets()) {
    std::size_t elements = 0;
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      std::vector<std::size_t> lengths;
      for (int rank = 0; rank < ranks(); ++rank) lengths.push_back(layout_.piece(b, rank, ranks()).size);
      lengths_.push_back(std::move(lengths));
      kept_at_.push_back(elements);
      elements += own_range(b).size;
    }
    kept_ = flat_buffer<T>(keeps_whole ? layout_.size() : elements, memory);
  }

  gradient_accumulator(gradient_accumulator&&) = default;
  /// Not assignable: what is on its way must end before its memory does.
  gradient_accumulator& operator=(gradient_accumulator&&) = delete;

  const parameter_layout& layout() const noexcept { return layout_; }
  /// This rank among those that share the gradient, and how many they are.
  int rank() const noexcept { return group_.shards->rank(); }
  int ranks() const noexcept { return group_.shards->size(); }
  /// The communicator of these.
  const auto& shards() const noexcept { return *group_.shards; }

  /// Begins microbatch `index`, from 0, of the `microbatches` of this step. The first begins a new step.
  void begin_microbatch(int index, int microbatches) {
    if (inside_ || index != next_ || microbatches < 1 || index >= microbatches || (index > 0 && microbatches != of_)) {
      refuse("begin_microbatch(" + std::to_string(index) + ", " + std::to_string(microbatches) + "): " +
             (inside_      ? "microbatch " + std::to_string(next_ - 1) + " has not ended: call end_microbatch first"
              : next_ == 0 ? std::string("a step begins with microbatch 0, of at least 1")
                           : "microbatch " + std::to_string(next_) + " of " + std::to_string(of_) + " is next" +
                                 (next_ == of_ ? " to none: call finish" : "")));
    }
    if (index == 0) begin_step(microbatches);
    inside_ = true;
    ++next_;
    to_launch_ = 0;
    std::fill(done_.begin(), done_.end(), false);
    for (std::size_t b = 0; b < missing_.size(); ++b) missing_[b] = layout_.members(b).size();
  }

  /// Where the gradient of parameter `i` is to be added, until it is ready. Zero at first. Waits while what lies there
  /// is still on its way from the last microbatch.
  std::span<T> of(std::size_t i) {
    check_open(i, "of");
    used(i) = 1;
    const std::size_t b = layout_.bucket_of(i);
    return formed(b).subspan(layout_.of(i).first - layout_.bucket(b).first, layout_.of(i).size);
  }

  /// Adds `gradient` to that of parameter `i`: `of(i)` for those who have it elsewhere, or add it exactly.
  template <contiguous_buffer Range>
  void add(std::size_t i, const Range& range) {
    const auto gradient = detail::as_input(range);
    const std::span<T> to = of(i);
    if (gradient.size() != to.size()) {
      refuse("add: parameter '" + layout_[i].name + "' has " + std::to_string(to.size()) + " elements, its gradient " +
             std::to_string(gradient.size()));
    }
    for (std::size_t at = 0; at < to.size(); ++at) {
      if constexpr (std::is_arithmetic_v<T>) {
        to[at] += static_cast<T>(gradient[at]);
      } else {
        to[at].add(gradient[at]);
      }
    }
  }

  /// The gradient of parameter `i` is complete for this microbatch, and may leave. Also moves on what is on its way.
  void ready(std::size_t i) {
    check_open(i, "ready");
    used(i) = 1;
    complete(i);
    progress();
  }

  /// Moves on what is on its way; for long computations between two parameters. Does not block.
  void progress() {
    const stopwatch watch(totals_.driving_seconds);
    move_on();
  }

  /// Ends the microbatch. Parameters that were not ready have no gradient in it: their gradient is what was added, if
  /// anything was, and else zero.
  /// @param loss the sum, not the mean, of its losses
  /// @param count what it is a sum of: tokens, or samples
  void end_microbatch(double loss, double count) {
    if (!inside_) refuse("end_microbatch: no microbatch has begun");
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      for (const std::size_t i : layout_.members(b)) {
        if (!done_[i]) complete(i);
      }
    }
    inside_ = false;
    report_[0] += loss;
    report_[1] += count;
    progress();
  }

  /// Waits for all buckets, and gives what the step adds up to. Then `result` is this rank's share of the sum.
  /// Collective.
  gradient_totals finish() {
    if (inside_ || next_ == 0 || next_ != of_) {
      refuse("finish: " + std::string(inside_      ? "a microbatch has not ended: call end_microbatch first"
                                      : next_ == 0 ? "no microbatch has begun"
                                                   : "only " + std::to_string(next_) + " of " + std::to_string(of_) +
                                                         " microbatches are done"));
    }
    {
      const stopwatch watch(totals_.exposed_seconds);
      while (waits_for_one()) {}
      sum_report();
    }
    next_ = 0;
    finished_ = true;
    totals_.loss = report_[0];
    totals_.count = report_[1];
    return totals_;
  }

  /// After `finish`: the part of bucket `b` that this rank has the sum of. All of it at stage 0, else a piece.
  std::span<T> result(std::size_t b) noexcept {
    return kept_.elements().subspan(keeps_whole ? own_range(b).first : kept_at_[b], own_range(b).size);
  }
  /// Where that lies in the layout.
  element_range own_range(std::size_t b) const noexcept {
    return Sharding::shards_states ? layout_.piece(b, rank(), ranks()) : layout_.bucket(b);
  }

  /// For what works on results: refuses before `finish`.
  void check_finished(const char* call) const {
    if (!finished_) refuse(std::string(call) + ": the step's sums are not there yet: call finish first");
  }
  /// For optimizers: the same, and refuses the second time, as one gradient is one step.
  void use() {
    check_finished("step");
    if (std::exchange(used_, true)) refuse("step: a step was taken with this gradient: add up another one first");
  }

  /// After `finish`: whether any rank had a gradient of parameter `i` in any microbatch.
  bool was_used(std::size_t i) const noexcept { return report_[2 + i] > 0; }

 private:
  using launched = detail::started_by<Reduction, typename Group::wire_type, T, Options>;

  static constexpr bool scatters_before_adding = std::is_same_v<When, scatter_every_reduce_last_t>;

  /// A bucket on its way.
  struct flight {
    std::size_t bucket;
    bool goes_on;  ///< from the ranks that share a copy to those that have others
    launched started;
  };

  /// Adds the time until its end to a sum.
  class stopwatch {
   public:
    explicit stopwatch(double& sum) noexcept : sum_(sum) {}
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;
    ~stopwatch() { sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

   private:
    double& sum_;
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  };

  [[noreturn]] void refuse(std::string reason) const {
    raise(errc::invalid_argument, std::move(reason),
          {.operation = "gradients", .rank = rank(), .ranks = ranks(), .site = site_});
  }

  void check_open(std::size_t i, const char* call) const {
    const std::string name = std::string(call) + "(" + std::to_string(i) + "): ";
    if (i >= layout_.parameters()) {
      refuse(name + "there are " + std::to_string(layout_.parameters()) + " parameters, numbered from 0");
    }
    if (!inside_) refuse(name + "no microbatch has begun: call begin_microbatch first");
    if (done_[i]) {
      refuse(name + "parameter '" + layout_[i].name + "' was ready before, in microbatch " + std::to_string(next_ - 1) +
             ", and its gradient may have left: each is ready once, when all of it was added");
    }
  }

  double& used(std::size_t i) noexcept { return report_[2 + i]; }

  void begin_step(int microbatches) {
    of_ = microbatches;
    finished_ = used_ = false;
    totals_ = {};
    std::fill(report_.begin(), report_.end(), 0.0);
    std::fill(kept_.elements().begin(), kept_.elements().end(), T{});
  }

  /// Where the gradient of a microbatch is formed.
  std::span<T> formed(std::size_t b) {
    if constexpr (keeps_whole) {
      return kept_.elements().subspan(layout_.bucket(b).first, layout_.bucket(b).size);
    } else {
      if (flying_[b]) {
        const stopwatch watch(totals_.exposed_seconds);
        while (flying_[b]) waits_for_one();
      }
      if (passing_[b].empty()) passing_[b] = flat_buffer<T>(layout_.bucket(b).size, memory_);
      return passing_[b].elements();
    }
  }

  /// This rank's part of it.
  std::span<T> own(std::size_t b) {
    const element_range range = own_range(b);
    const std::size_t begin = layout_.bucket(b).first;
    if constexpr (keeps_whole) {
      return kept_.elements().subspan(range.first, range.size);
    } else {
      return passing_[b].elements().subspan(range.first - begin, range.size);
    }
  }

  void complete(std::size_t i) {
    done_[i] = true;
    --missing_[layout_.bucket_of(i)];
    if (keeps_whole && next_ != of_) return;
    while (to_launch_ < layout_.buckets() && missing_[to_launch_] == 0) launch(to_launch_++);
  }

  void launch(std::size_t b) {
    const stopwatch watch(totals_.driving_seconds);
    const std::span<T> all = formed(b);
    flying_[b] = true;
    const bool goes_on = Group::has_replicas && (!scatters_before_adding || next_ == of_);
    if constexpr (Sharding::shards_states) {
      within_.push_back(
          {b, goes_on,
           reduction_.reduce_scatter(*group_.shards, b, all, own(b), counts{lengths_[b]}, options_, site_)});
    } else {
      within_.push_back({b, goes_on, reduction_.all_reduce(*group_.shards, b, all, options_, site_)});
    }
  }

  /// The sum over the ranks of one copy is there.
  void is_within(std::size_t b, [[maybe_unused]] bool goes_on) {
    if constexpr (Group::has_replicas) {
      if constexpr (scatters_before_adding) fold(b);
      if (goes_on) {
        const std::span<T> part = scatters_before_adding ? result(b) : own(b);
        across_.push_back({b, false, reduction_.all_reduce(*group_.replicas, b, part, options_, site_)});
        return;
      }
      if constexpr (!scatters_before_adding) fold(b);
      flying_[b] = false;
    } else {
      is_across(b);
    }
  }

  /// The sum over all ranks is there.
  void is_across(std::size_t b) {
    if constexpr (!scatters_before_adding) fold(b);
    flying_[b] = false;
  }

  /// Adds what came of a microbatch to what is kept of the step.
  void fold(std::size_t b) {
    if constexpr (!keeps_whole) {
      const std::span<T> sum = result(b), part = own(b);
      for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += part[at];
      passing_[b] = {};
    }
  }

  /// What is over is dealt with in the order in which it was launched, so that all ranks launch what follows it in one
  /// order too.
  void move_on() {
    while (!within_.empty() && within_.front().started.test()) end_first_within();
    while (!across_.empty() && across_.front().started.test()) end_first_across();
  }

  /// Waits for one that is on its way; false if none is.
  bool waits_for_one() {
    if (!within_.empty() && !across_.empty()) wait_on_both();
    if (!within_.empty() && across_.empty()) {
      end_first_within();
    } else if (!across_.empty() && within_.empty()) {
      end_first_across();
    }
    return !within_.empty() || !across_.empty();
  }

  /// A blocking wait moves one communicator on, and here two have something under way: other ranks may wait for either,
  /// so both are moved on until one of them has nothing left. Past the deadline, a blocking wait says what is wrong.
  void wait_on_both() {
    const auto end = std::chrono::steady_clock::now() + group_.shards->timeout();
    for (unsigned polls = 1; !within_.empty() && !across_.empty(); ++polls) {
      const std::size_t before = within_.size() + across_.size();
      move_on();
      if (within_.size() + across_.size() != before) continue;
      polls < 1000 ? std::this_thread::yield() : std::this_thread::sleep_for(std::chrono::microseconds(50));
      if (std::chrono::steady_clock::now() > end) end_first_across();
    }
  }

  void end_first_within() {
    within_.front().started.wait();
    const std::size_t b = within_.front().bucket;
    const bool goes_on = within_.front().goes_on;
    within_.pop_front();
    is_within(b, goes_on);
  }

  void end_first_across() {
    across_.front().started.wait();
    const std::size_t b = across_.front().bucket;
    across_.pop_front();
    is_across(b);
  }

  void sum_report() {
    all_reduce(*group_.shards, in_place(std::span(report_)), std::plus<>{}, options<>{}, site_);
    if constexpr (Group::has_replicas) {
      all_reduce(*group_.replicas, in_place(std::span(report_)), std::plus<>{}, options<>{}, site_);
    }
  }

  Group group_;
  parameter_layout layout_;
  Options options_;
  Reduction reduction_;
  std::source_location site_;
  std::pmr::memory_resource* memory_;

  int next_ = 0;  ///< how many microbatches of this step have begun
  int of_ = 0;
  bool inside_ = false;
  bool finished_ = false;
  bool used_ = false;  ///< by an optimizer
  std::size_t to_launch_ = 0;
  gradient_totals totals_;

  std::vector<std::size_t> missing_;               ///< of each bucket: parameters that are not ready
  std::vector<bool> flying_;                       ///< whether it is on its way
  std::vector<bool> done_;                         ///< of each parameter: ready, or over with the microbatch
  std::vector<double> report_;                     ///< loss, count, and of each parameter how often it was used
  std::vector<std::vector<std::size_t>> lengths_;  ///< of each bucket: of the ranks' pieces
  std::vector<std::size_t> kept_at_;               ///< where this rank's piece of each bucket is kept
  flat_buffer<T> kept_;
  std::vector<flat_buffer<T>> passing_;  ///< of each bucket: the microbatch's gradient, while there is one
  std::deque<flight> within_;            ///< the last members, so that they end before their memory does
  std::deque<flight> across_;
};

/// Where the gradients of `layout` are added up, over microbatches and the ranks of `group`.
///
/// Collective calls follow on `group`, a communicator, or `hybrid(shards, replicas)`; it must outlive the result, and
/// carry nothing else from `begin_microbatch` to `finish`.
/// @tparam T what is added: `float` even where less travels (`with(wire<bfloat16>)`); or `exact_sum<float>`, for bits
///   that do not depend on how tokens were spread over microbatches and ranks
/// @param when, what when to reduce, and what each rank keeps: see policy.hpp for the pairs that there are
/// @param options those of the collectives: an algorithm, a wire type, a timeout …
/// @param reduction what sends a bucket: see reduction.hpp
/// @param memory where all of it is allocated; must outlive the result
template <class T, class Over, class When, class Sharding, call_options Options = options<>,
          class Reduction = plain_reduction>
auto gradients(const Over& group, parameter_layout layout, When, Sharding, const Options& options = {},
               Reduction reduction = {}, std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
               const std::source_location& site = std::source_location::current()) {
  using group_type = decltype(detail::as_group(group));
  if constexpr (detail::checked_accumulation<When, Sharding, group_type::has_replicas>::value &&
                detail::checked_reduction<Reduction, typename group_type::wire_type, T, Options>::value) {
    return gradient_accumulator<T, When, Sharding, group_type, Options, Reduction>(
        detail::as_group(group), std::move(layout), options, std::move(reduction), memory, site);
  }
}

HOCKET_END_NAMESPACE
