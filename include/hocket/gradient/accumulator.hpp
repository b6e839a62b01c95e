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
#include <hocket/core/error.hpp>
#include <hocket/core/flat_buffer.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/buckets_in_flight.hpp>
#include <hocket/gradient/communication_time.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/layout_agreement.hpp>
#include <hocket/gradient/layout_share.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>
#include <hocket/gradient/reduction.hpp>
#include <hocket/gradient/totals.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <exception>
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
class gradient_accumulator {
 public:
  using value_type = T;
  using sharding = Sharding;
  using group_type = Group;
  static constexpr bool keeps_whole = std::is_same_v<When, last_microbatch_t>;

  /// See `gradients`.
  gradient_accumulator(Group group, parameter_layout layout, Options options, Reduction reduction,
                       std::pmr::memory_resource* memory, const std::source_location& site)
      : group_(group), layout_(std::move(layout)), options_(std::move(options)), reduction_(std::move(reduction)),
        site_(site), memory_(memory), share_(layout_, Sharding::shards_states, rank(), ranks()),
        reduced_(layout_, scatters, rank(), ranks()), missing_(layout_.buckets()),
        is_in_flight_(layout_.buckets(), false), done_(layout_.parameters(), false),
        report_(uses + layout_.parameters()), passing_(keeps_whole ? 0 : layout_.buckets()) {
    detail::check_same_layout(*group_.shards, layout_, bounds(), "gradients", site_);
    if constexpr (Group::has_replicas) {
      detail::check_same_layout(*group_.replicas, layout_, bounds(), "gradients", site_);
    }
    kept_ = flat_buffer<T>(keeps_whole ? layout_.size() : share_.elements(), memory);
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
  const Group& group() const noexcept { return group_; }

  /// The timeout and the stop token that all of its calls have.
  auto bounds() const { return detail::bounds_of(options_); }

  /// Whether it adds up over the ranks of `comm`, and no others.
  template <class Domain>
  bool adds_over(const communicator<Domain>& comm) const {
    std::vector<int> all = detail::members_of(comm), own = detail::members_of(*group_.shards);
    std::sort(all.begin(), all.end());
    if constexpr (Group::has_replicas) {
      const std::vector<int> others = detail::members_of(*group_.replicas);
      if (own.size() * others.size() != all.size()) return false;
      own.insert(own.end(), others.begin(), others.end());
    } else {
      if (own.size() != all.size()) return false;
    }
    return std::all_of(own.begin(), own.end(),
                       [&](int each) { return std::binary_search(all.begin(), all.end(), each); });
  }

  /// Whether it adds up over another rank of `comm` than this one.
  template <class Domain>
  bool adds_over_some_of(const communicator<Domain>& comm) const {
    const std::vector<int>& others = detail::members_of(comm);
    const int self = others[static_cast<std::size_t>(comm.rank())];
    const auto shared = [&](const auto& own) {
      const std::vector<int>& members = detail::members_of(own);
      return std::any_of(members.begin(), members.end(), [&](int each) {
        return each != self && std::find(others.begin(), others.end(), each) != others.end();
      });
    };
    if constexpr (Group::has_replicas) {
      if (shared(*group_.replicas)) return true;
    }
    return shared(*group_.shards);
  }

  /// Begins microbatch `index`, from 0, of the `microbatches` of this step. The first begins a new step.
  void begin_microbatch(int index, int microbatches) {
    if (inside_ || index != next_ || microbatches < 1 || index >= microbatches || (index > 0 && microbatches != of_)) {
      refuse(detail::concat(
          {"begin_microbatch(", index, ", ", microbatches, "): ",
           inside_      ? detail::concat({"microbatch ", next_ - 1, " has not ended: call end_microbatch first"})
           : next_ == 0 ? std::string("a step begins with microbatch 0, of at least 1")
                        : detail::concat({"microbatch ", next_, " of ", of_, " is next",
                                          next_ == of_ ? " to none: call finish" : ""})}));
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

  /// Adds `gradient` to that of parameter `i`: `of(i)` for those who have it elsewhere, or add it exactly. Its elements
  /// are of a type that has no more digits than what sums are kept in.
  template <contiguous_buffer Range>
  void add(std::size_t i, const Range& range) {
    const auto gradient = detail::as_input(range);
    static_assert(detail::fits_into<typename decltype(gradient)::value_type, T>(),
                  "gradients.add: an element of this gradient has more digits than what it is added to, and would be "
                  "rounded before: say gradients<double>, or exact_sum<double>, or round it yourself");
    const std::span<T> to = of(i);
    if (gradient.size() != to.size()) {
      refuse(detail::concat(
          {"add: parameter '", layout_[i].name, "' has ", to.size(), " elements, its gradient ", gradient.size()}));
    }
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
  void ready(std::size_t i) {
    check_open(i, "ready");
    used(i) = 1;
    complete(i);
    progress();
  }

  /// Moves on what is on its way; for long computations between two parameters. Does not block.
  void progress() {
    const stopwatch watch(totals_.driving_seconds);
    in_flight_.move_on(landed());
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
    report_[losses] += loss;
    report_[counts_of_losses] += count;
    progress();
  }

  /// Waits for all buckets, and gives what the step adds up to. Then `result` is this rank's share of the sum.
  /// Collective.
  gradient_totals finish() {
    check_complete("finish");
    wait_for_all();
    return finish_counts();
  }

  /// The same without the wait: buckets may be on their way still, until `wait` or whoever needs them: `norm` waits for
  /// all of them, `optimizer::step` for one after the other, those first that the next forward pass needs first.
  /// With `bucket_order::forward` these come first too. What they are waited for is in `totals` afterwards. With
  /// replicas, or where pieces are gathered, as `finish`. Collective.
  gradient_totals finish_counts() {
    check_complete("finish");
    // Each replica must be called in one order by all: what goes on to it before what is summed over it here.
    if constexpr (Group::has_replicas || gathers) wait_for_all();
    if constexpr (gathers) gather();
    {
      const stopwatch watch(totals_.exposed_seconds);
      sum_report();
    }
    next_ = 0;
    finished_ = true;
    totals_.loss = report_[losses];
    totals_.count = report_[counts_of_losses];
    totals_.abandoned = static_cast<int>(report_[abandonments]);
    return totals_;
  }

  /// Waits until the sum of bucket `b` is there.
  void wait(std::size_t b) {
    if (!is_in_flight_[b]) return;
    const stopwatch watch(totals_.exposed_seconds);
    while (is_in_flight_[b]) wait_for_one();
  }

  /// What the last call of `finish` gave, with the waits since then.
  const gradient_totals& totals() const noexcept { return totals_; }

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
  gradient_totals abandon() {
    if (next_ == 0) {
      finished_ = false;
      return {};
    }
    report_[abandonments] = 1;
    while (inside_ || next_ != of_) {
      if (!inside_) begin_microbatch(next_, of_);
      end_microbatch(0, 0);
    }
    return finish();
  }

  /// The same, whether this rank has begun the step or not: it has `microbatches`, here as on the other ranks.
  /// A rank that merely has no data gives up nothing: it begins its microbatches, and ends them with a count of 0; with
  /// zero<3> it goes through the layers in between, as above.
  gradient_totals abandon(int microbatches) {
    if (next_ == 0) begin_microbatch(0, microbatches);
    if (microbatches != of_) {
      refuse(detail::concat({"abandon(", microbatches, "): this step has ", of_, " microbatches"}));
    }
    return abandon();
  }

  /// After `finish`, or `wait(b)`: the part of bucket `b` that this rank has the sum of. All of it at stage 0, else a
  /// piece.
  std::span<T> result(std::size_t b) noexcept {
    if constexpr (keeps_whole) return kept_.elements().subspan(own_range(b).first, own_range(b).size);
    return share_.of(kept_.elements(), b);
  }
  /// Where that lies in the layout.
  const element_range& own_range(std::size_t b) const noexcept { return share_.range(b); }

  /// For what works on results: refuses before `finish`.
  void check_finished(const char* call) const {
    if (!finished_) refuse(std::string(call) + ": the step's sums are not there yet: call finish first");
  }
  /// For optimizers: the same, and refuses the second time, as one gradient is one step.
  void use() {
    check_finished("step");
    if (abandoned()) {
      refuse(detail::concat(
          {"step: ", totals_.abandoned,
           " ranks abandoned this step, and there is no gradient: skip it where norm(...).finite is false"}));
    }
    if (std::exchange(used_, true)) refuse("step: a step was taken with this gradient: add up another one first");
  }

  /// After `finish`: whether any rank gave the step up.
  bool abandoned() const noexcept { return totals_.abandoned > 0; }

  /// After `finish`: whether any rank had a gradient of parameter `i` in any microbatch.
  bool was_used(std::size_t i) const noexcept { return report_[uses + i] > 0; }

 private:
  /// Where things are in the report that is summed over ranks: behind `uses`, of each parameter how often it was used.
  enum report_entry : std::size_t { losses, counts_of_losses, abandonments, uses };

  /// Whether a reduction leaves a piece of the bucket; and whether that is less than what is kept.
  static constexpr bool scatters = Sharding::shards_states || detail::reduces_in_pieces<Reduction>;
  static constexpr bool gathers = scatters && !Sharding::shards_states;
  static constexpr bool scatters_before_adding = std::is_same_v<When, scatter_every_reduce_last_t>;

  [[noreturn]] void refuse(std::string reason) const {
    raise(errc::invalid_argument, std::move(reason),
          {.operation = "gradients", .rank = rank(), .ranks = ranks(), .site = site_});
  }

  void check_open(std::size_t i, const char* call) const {
    if (i < layout_.parameters() && inside_ && !done_[i]) [[likely]]
      return;
    const std::string name = detail::concat({call, "(", i, "): "});
    if (i >= layout_.parameters()) {
      refuse(detail::concat({name, "there are ", layout_.parameters(), " parameters, numbered from 0"}));
    }
    if (!inside_) refuse(name + "no microbatch has begun: call begin_microbatch first");
    refuse(detail::concat({name, "parameter '", layout_[i].name, "' was ready before, in microbatch ", next_ - 1,
                           ", and its gradient may have left: each is ready once, when all of it was added"}));
  }

  void check_complete(const char* call) const {
    if (!inside_ && next_ != 0 && next_ == of_) return;
    refuse(detail::concat({call, ": ",
                           inside_      ? std::string("a microbatch has not ended: call end_microbatch first")
                           : next_ == 0 ? std::string("no microbatch has begun")
                                        : detail::concat({"only ", next_, " of ", of_, " microbatches are done"})}));
  }

  double& used(std::size_t i) noexcept { return report_[uses + i]; }

  void begin_step(int microbatches) {
    totals_ = {};
    wait_for_all();  // of a step that was not taken after `finish_counts`
    of_ = microbatches;
    finished_ = used_ = false;
    std::fill(report_.begin(), report_.end(), 0.0);
    std::fill(kept_.elements().begin(), kept_.elements().end(), T{});
  }

  /// Where the gradient of a microbatch is formed.
  std::span<T> formed(std::size_t b) {
    if constexpr (keeps_whole) {
      return kept_.elements().subspan(layout_.bucket(b).first, layout_.bucket(b).size);
    } else {
      const std::size_t most = layout_.limits().in_flight;
      if (is_in_flight_[b] || (passing_[b].empty() && in_flight_.size() > most)) {
        const stopwatch watch(totals_.exposed_seconds);
        while (is_in_flight_[b] || in_flight_.size() > most) wait_for_one();
      }
      if (passing_[b].empty()) passing_[b] = flat_buffer<T>(layout_.bucket(b).size, memory_);
      return passing_[b].elements();
    }
  }

  /// The part of it that this rank has the sum of.
  std::span<T> own(std::size_t b) {
    const element_range range = reduced_.range(b);
    const std::size_t begin = layout_.bucket(b).first;
    if constexpr (keeps_whole) {
      return kept_.elements().subspan(range.first, range.size);
    } else {
      return passing_[b].elements().subspan(range.first - begin, range.size);
    }
  }

  /// The same of what is kept.
  std::span<T> summed(std::size_t b) {
    return result(b).subspan(reduced_.range(b).first - own_range(b).first, reduced_.range(b).size);
  }

  void complete(std::size_t i) {
    done_[i] = true;
    --missing_[layout_.bucket_of(i)];
    if (keeps_whole && next_ != of_) return;
    while (to_launch_ < layout_.buckets() && missing_[layout_.leaves(to_launch_)] == 0) {
      launch(layout_.leaves(to_launch_++));
    }
  }

  void launch(std::size_t b) {
    const std::span<T> all = formed(b);  // may wait, which is another's time
    const stopwatch watch(totals_.driving_seconds);
    is_in_flight_[b] = true;
    const bool goes_on = Group::has_replicas && (!scatters_before_adding || next_ == of_);
    if constexpr (scatters) {
      in_flight_.launch_within(b, goes_on, begun(b, [&] {
                                 return reduction_.reduce_scatter(*group_.shards, b, all, own(b),
                                                                  counts{reduced_.lengths(layout_, b)}, options_,
                                                                  site_);
                               }));
    } else {
      in_flight_.launch_within(
          b, goes_on, begun(b, [&] { return reduction_.all_reduce(*group_.shards, b, all, options_, site_); }));
    }
  }

  /// What `start()` gives. Where it throws, peers wait for what this rank will not send: they hear why.
  template <class Start>
  request begun([[maybe_unused]] std::size_t b, Start start) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return detail::as_request(start());
    } catch (const std::exception& thrown) {
      end_for_all(b, thrown.what());
      throw;
    } catch (...) {
      end_for_all(b, "something that is no std::exception");
      throw;
    }
#else
    return detail::as_request(start());
#endif
  }
  HOCKET_COLD void end_for_all(std::size_t b, const std::string& thrown) const {
    const std::string reason = detail::concat({"the reduction of bucket ", b, " did not begin: ", thrown});
    group_.shards->revoke(reason, site_);
    if constexpr (Group::has_replicas) group_.replicas->revoke(reason, site_);
  }

  /// The sum over the ranks of one copy is there.
  void is_within(std::size_t b, [[maybe_unused]] bool goes_on) {
    if constexpr (Group::has_replicas) {
      if constexpr (scatters_before_adding) fold(b);
      if (goes_on) {
        const std::span<T> part = scatters_before_adding ? result(b) : own(b);
        in_flight_.launch_across(
            b, begun(b, [&] { return reduction_.all_reduce(*group_.replicas, b, part, options_, site_); }));
        return;
      }
      if constexpr (!scatters_before_adding) fold(b);
      is_in_flight_[b] = false;
    } else {
      is_across(b);
    }
  }

  /// The sum over all ranks is there.
  void is_across(std::size_t b) {
    if constexpr (!scatters_before_adding) fold(b);
    is_in_flight_[b] = false;
  }

  /// Adds what came of a microbatch to what is kept of the step.
  void fold(std::size_t b) {
    if constexpr (!keeps_whole) {
      const std::span<T> sum = summed(b), part = own(b);
      for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += part[at];
      passing_[b] = {};
    }
  }

  auto landed() {
    return [this](std::size_t b, bool across, bool goes_on) { across ? is_across(b) : is_within(b, goes_on); };
  }
  void wait_for_one() {
    in_flight_.wait_for_one(options_.template get<kind::timeout>(timeout_property{group_.shards->timeout()}).duration,
                            landed());
  }
  void wait_for_all() {
    const stopwatch watch(totals_.exposed_seconds);
    while (in_flight_.size() > 0) wait_for_one();
  }

  /// Gives all ranks the pieces that each has summed.
  void gather() {
    const stopwatch watch(totals_.exposed_seconds);
    std::vector<request> started;
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      const std::span<T> all = result(b), own = summed(b);
      const counts lengths{reduced_.lengths(layout_, b)};
      started.push_back(all_gather_v_async(*group_.shards, std::span<const T>(own), all, lengths, bounds(), site_));
    }
    for (request& each : started) each.wait();
  }

  void sum_report() {
    all_reduce(*group_.shards, in_place(std::span(report_)), std::plus<>{}, bounds(), site_);
    if constexpr (Group::has_replicas) {
      all_reduce(*group_.replicas, in_place(std::span(report_)), std::plus<>{}, bounds(), site_);
    }
  }

  Group group_;
  parameter_layout layout_;
  Options options_;
  Reduction reduction_;
  std::source_location site_;
  std::pmr::memory_resource* memory_;
  detail::layout_share share_;    ///< what is kept
  detail::layout_share reduced_;  ///< what reductions leave

  int next_ = 0;  ///< how many microbatches of this step have begun
  int of_ = 0;
  bool inside_ = false;
  bool finished_ = false;
  bool used_ = false;  ///< by an optimizer
  std::size_t to_launch_ = 0;
  gradient_totals totals_;

  std::vector<std::size_t> missing_;  ///< of each bucket: parameters that are not ready
  std::vector<bool> is_in_flight_;    ///< whether it is on its way
  std::vector<bool> done_;            ///< of each parameter: ready, or over with the microbatch
  std::vector<double> report_;        ///< see `report_entry`
  flat_buffer<T> kept_;
  std::vector<flat_buffer<T>> passing_;  ///< of each bucket: the microbatch's gradient, while there is one
  detail::buckets_in_flight in_flight_;  ///< the last member, so that they end before their memory does
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
