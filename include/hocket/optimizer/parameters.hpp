// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The parameters of a model in flat memory. Each rank stores all of them, or only its pieces and gathers the rest
/// while a layer computes with it.
///
/// @code
/// auto parameters = hocket::parameters<float>(comm, layout, hocket::zero<3>);
/// for (std::size_t i = 0; i < layout.parameters(); ++i) parameters.set(i, initial_values(i));   // equal on all ranks
/// parameters.gather(1);           // in flight during the computation with bucket 2
/// use(parameters.of(i));          // waits for its bucket
/// parameters.release(2);
/// @endcode
#pragma once

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/flat_buffer.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/accumulator_diagnostics.hpp>
#include <hocket/gradient/communication_time.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/layout_agreement.hpp>
#include <hocket/gradient/layout_share.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>
#include <hocket/optimizer/state.hpp>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Parameters in flat memory. Made by `parameters`.
///
/// **Order.** `gather` is collective: every rank of the group gathers the same buckets in the same order. With zero<0>
/// to zero<2> the optimizer gathers after its step. With zero<3> the caller gathers. Because gradients are sent at the
/// same time, the parameters then need another communicator, which outlives them:
/// `const auto fetching = split(comm, color{0}, key{comm.rank()})`. `of` may wait for other ranks, and so may `of` of a
/// `gradient_accumulator`: all ranks must call the two in the same order.
/// **Cost.** A gather of n bytes is an all_gather of n on the ranks that share a copy. Construction is an all_gather of
/// 16 bytes per rank, for zero<1> to zero<3>.
/// **Memory.** All parameters; with zero<3> this rank's pieces and the gathered buckets: `consecutive_bucket_bytes` of
/// the largest number of buckets that are gathered at the same time.
/// **Threads.** Like the communicator.
template <class P, class Sharding, class Group, class Options>
class flat_parameters {
 public:
  using value_type = P;
  using sharding = Sharding;
  using group_type = Group;

  /// See `parameters`.
  flat_parameters(Group group, parameter_layout layout, Options options, std::pmr::memory_resource* memory,
                  const std::source_location& site)
      : group_(group), layout_(std::move(layout)), options_(std::move(options)), memory_(memory), site_(site),
        share_(layout_, Sharding::shards_states, rank(), ranks()),
        gathered_(Sharding::shards_parameters ? layout_.buckets() : 0), gather_requests_(layout_.buckets()) {
    if constexpr (Sharding::shards_states) {
      detail::check_same_layout(*group_.shards, layout_, detail::bounds_of(options_), "parameters", site_);
    }
    kept_ = flat_buffer<P>(Sharding::shards_parameters ? share_.elements() : layout_.size(), memory);
  }

  flat_parameters(flat_parameters&&) = default;
  /// Not assignable: gathers in flight must end before their memory is freed.
  flat_parameters& operator=(flat_parameters&&) = delete;

  const parameter_layout& layout() const noexcept { return layout_; }  ///< parameters and buckets
  const Group& group() const noexcept { return group_; }               ///< the ranks
  int rank() const noexcept { return group_.shards->rank(); }
  int ranks() const noexcept { return group_.shards->size(); }

  /// Sets parameter `i` to these values, of which this rank stores its part. Call with equal values on all ranks.
  void set(std::size_t i, std::span<const P> values) {
    check(i, "set");
    const element_range where = layout_.of(i);
    if (values.size() != where.size) {
      refuse(detail::concat(
          {"set: parameter '", layout_[i].name, "' has ", where.size, " elements, not ", values.size()}));
    }
    const std::size_t b = layout_.bucket_of(i);
    wait(b);
    const element_range kept = kept_range(b), part = common_part(kept, where);
    if (part.size > 0) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(part.first - where.first), part.size,
                  kept_values(b).begin() + static_cast<std::ptrdiff_t>(part.first - kept.first));
    }
    if constexpr (Sharding::shards_parameters) {
      if (!gathered_[b].empty()) std::copy(values.begin(), values.end(), of(i).begin());
    }
  }

  /// Returns the values of parameter `i`. Waits if its bucket is in flight. Raises `invalid_argument` if the bucket is
  /// not gathered, or has been released.
  std::span<P> of(std::size_t i) {
    check(i, "of");
    const std::size_t b = layout_.bucket_of(i);
    wait(b);
    if constexpr (Sharding::shards_parameters) {
      if (gathered_[b].empty() && layout_.bucket(b).size > 0) {
        refuse(detail::concat({"of: parameter '", layout_[i].name, "' is not gathered: call gather(", b,
                               ") on all ranks first, and release the bucket afterwards"}));
      }
    }
    return whole(b).subspan(layout_.of(i).first - layout_.bucket(b).first, layout_.of(i).size);
  }

  /// The part of bucket `b` that this rank updates: the whole bucket at stage 0, otherwise a piece.
  std::span<P> own(std::size_t b) noexcept {
    if constexpr (Sharding::shards_parameters) return share_.of(kept_.elements(), b);
    return kept_.elements().subspan(own_range(b).first, own_range(b).size);
  }
  /// The position of `own(b)` in the layout.
  const element_range& own_range(std::size_t b) const noexcept { return share_.range(b); }

  /// Returns the part of bucket `b` that this rank writes into a checkpoint. Over all ranks of the group, replicas
  /// included, each element is in one such part.
  element_range dealt_range(std::size_t b) const noexcept {
    const element_range piece = layout_.piece(b, rank(), ranks());
    if constexpr (Group::has_replicas) return piece_of(piece, group_.replicas->rank(), group_.replicas->size());
    return piece;
  }

  /// Returns the parameters' values as pieces of the array "parameter": over all ranks of the group, each element once.
  /// They refer to this object's memory, and are valid until parameters change.
  std::vector<state_piece<P>> state() {
    std::vector<state_piece<P>> pieces;
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      detail::add_pieces<P>(pieces, "parameter", layout_, b, dealt_range(b), own_range(b), own(b));
    }
    return pieces;
  }

  /// Sets all stored values from `pieces`, which any number of ranks at any stage may have written, and which may
  /// include more than this rank stores. Releases gathered buckets. Call on all ranks, with equal values. Raises
  /// `invalid_argument` if a part of a parameter is missing, or if it has another size; then nothing is changed.
  void restore(std::span<const state_piece<P>> pieces) {
    const detail::state_reader<P> reader(pieces);
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      std::string why = reader.why_bucket_incomplete("parameter", layout_, b, kept_range(b));
      if (!why.empty()) refuse("restore: " + std::move(why));
    }
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      wait(b);
      release(b);
    }
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      reader.read_bucket("parameter", layout_, b, kept_range(b), kept_values(b));
    }
  }

  /// Calls `visit("parameter", parameter, first, values)` for each part of a parameter that this rank stores from step to
  /// step: the elements from `first` on, which `visit` or a later reader may change, then with equal values on all ranks.
  /// Releases gathered buckets. The memory remains valid as long as this object.
  template <class Visit>
  void visit_stored(Visit visit) {
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      wait(b);
      release(b);
    }
    for (std::size_t b = 0; b < layout_.buckets(); ++b)
      detail::visit_stored_parts("parameter", layout_, b, kept_range(b), kept_values(b), visit);
  }

  /// Starts to gather the other ranks' pieces of bucket `b`. With zero<3>, does nothing if the bucket is gathered or in
  /// flight; with zero<1> and zero<2> gathers again, as an optimizer needs. Collective.
  void gather(std::size_t b) {
    if constexpr (!Sharding::shards_states) return;
    if (b >= layout_.buckets()) {
      refuse(detail::concat({"gather(", b, "): there are ", layout_.buckets(), " buckets"}));
    }
    if constexpr (Sharding::shards_parameters) {
      if (!gathered_[b].empty()) return;
      gathered_[b] = flat_buffer<P>(layout_.bucket(b).size, memory_);
    }
    wait(b);
    const stopwatch watch(time_.driving_seconds);
    gather_requests_[b] = all_gather_v_async(*group_.shards, std::span<const P>(own(b)), whole(b),
                                             counts{share_.lengths(layout_, b)}, options_, site_);
    is_gathering_[b] = true;
  }

  /// Waits until the gather of bucket `b` has completed. Throws its errors.
  void wait(std::size_t b) {
    if (!is_gathering_[b]) return;
    const stopwatch watch(time_.exposed_seconds);
    gather_requests_[b].wait();
    static_cast<void>(gather_requests_[b] = request());
    is_gathering_[b] = false;
  }

  /// Returns the time of parameters' communication since the last call of this function.
  communication_time take_time() noexcept { return std::exchange(time_, {}); }

  /// Frees the gathered pieces of bucket `b`; does nothing below zero<3>.
  void release(std::size_t b) {
    if constexpr (Sharding::shards_parameters) {
      wait(b);
      gathered_[b] = {};
      holders_[b] = 0;
    }
  }

  /// Gathers the buckets of the parameters `first` to `first + count - 1`, unless they are already held. A layer calls
  /// this before it computes, or a pipeline stage in its `unshard()`, at the points that the schedule lists
  /// (`lower(plan, {.shard_parameters = true})`). Does nothing below zero<3>. Collective, like `gather`.
  void hold(std::size_t first, std::size_t count) {
    visit_buckets(first, count, [&](std::size_t b) {
      if (holders_[b]++ == 0) gather(b);
    });
  }
  /// Ends a `hold` of these parameters, and releases the buckets that are no longer held: for `reshard()`.
  void end_hold(std::size_t first, std::size_t count) {
    visit_buckets(first, count, [&](std::size_t b) {
      if (holders_[b] > 0 && --holders_[b] == 0) release(b);
    });
  }

 private:
  [[noreturn]] void refuse(std::string reason) const {
    raise(errc::invalid_argument, std::move(reason),
          {.operation = "parameters", .rank = rank(), .ranks = ranks(), .site = site_});
  }
  void check(std::size_t i, const char* call) const {
    if (i >= layout_.parameters()) {
      refuse(detail::concat({call, "(", i, "): there are ", layout_.parameters(), " parameters, numbered from 0"}));
    }
  }

  /// The part of bucket `b` that this rank stores, and its memory.
  const element_range& kept_range(std::size_t b) const noexcept {
    return Sharding::shards_parameters ? own_range(b) : layout_.bucket(b);
  }
  std::span<P> kept_values(std::size_t b) noexcept {
    if constexpr (Sharding::shards_parameters) return own(b);
    return whole(b);
  }
  /// Calls `visit` for the buckets of these parameters, in the order of the forward pass; only with zero<3>.
  template <class Visit>
  void visit_buckets(std::size_t first, std::size_t count, Visit visit) const {
    if (!Sharding::shards_parameters || count == 0) return;
    check(first, "hold");
    check(first + count - 1, "hold");
    for (std::size_t b = layout_.bucket_of(first) + 1; b-- > layout_.bucket_of(first + count - 1);) visit(b);
  }

  std::span<P> whole(std::size_t b) noexcept {
    if constexpr (Sharding::shards_parameters) {
      return gathered_[b].elements();
    } else {
      return kept_.elements().subspan(layout_.bucket(b).first, layout_.bucket(b).size);
    }
  }

  Group group_;
  parameter_layout layout_;
  Options options_;
  std::pmr::memory_resource* memory_;
  std::source_location site_;
  detail::layout_share share_;
  communication_time time_;
  std::vector<int> holders_ = std::vector<int>(layout_.buckets(), 0);  ///< per bucket: number of holds
  std::vector<bool> is_gathering_ = std::vector<bool>(layout_.buckets(), false);
  flat_buffer<P> kept_;
  std::vector<flat_buffer<P>> gathered_;
  std::vector<request> gather_requests_;  ///< last member, so that gathers end before their memory is freed
};

/// Makes the parameters of `layout`, zero at first, stored on the ranks of `group` at stage `Sharding`. `group` is a
/// communicator or `hybrid(shards, replicas)`, and must outlive the result: a temporary does not compile. Collective
/// for zero<1> to zero<3>: raises `mismatch` on all ranks if their layouts differ, with the first difference.
/// @param options options of the all_gather_v: an algorithm, a timeout …
/// @param memory allocates the parameters; must outlive the result
template <class P, class Over, class Sharding, class Options = options<>>
  requires detail::makes_parameters<P, Over, parameter_layout, Sharding, Options>
auto parameters(Over&& group, parameter_layout layout, Sharding, const Options& options = {},
                std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                const std::source_location& site = std::source_location::current()) {
  using group_type = decltype(detail::as_group(group));
  return flat_parameters<P, Sharding, group_type, Options>(detail::as_group(group), std::move(layout), options, memory,
                                                           site);
}

/// Deleted: the template argument `Why` is the reason.
template <class P = void, class... Given, auto Why = detail::why_no_parameters<P, Given...>()>
detail::not_understood parameters(Given&&...) = delete;

HOCKET_END_NAMESPACE
