// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The parameters of a model in flat memory, of which each rank keeps all, or its pieces alone, with the rest fetched
/// for as long as a layer computes with it.
///
/// @code
/// auto parameters = hocket::parameters<float>(comm, layout, hocket::zero<3>);
/// for (std::size_t i = 0; i < layout.parameters(); ++i) parameters.set(i, initial_values(i));   // equal on all ranks
/// parameters.gather(1);           // on its way while bucket 2 is computed with
/// use(parameters.of(i));          // waits for its bucket
/// parameters.release(2);
/// @endcode
#pragma once

#include <hocket/collective/all_gather_v.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/flat_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Made by `parameters`.
///
/// **Order.** `gather` is collective: every rank of the group gathers the same buckets in the same order. With zero<0>
/// to zero<2> the optimizer does it after its step. With zero<3> whoever computes says when; as gradients leave
/// meanwhile, its communicator must be one of its own: `split(comm, color{0}, key{comm.rank()})`.
/// **Cost.** A gather of n bytes: an all_gather of n on the ranks that share a copy.
/// **Memory.** All parameters; with zero<3> this rank's pieces, and the buckets that are gathered.
/// **Threads.** As its communicator.
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
        gathered_(Sharding::shards_parameters ? layout_.buckets() : 0), coming_(layout_.buckets()) {
    std::size_t elements = 0;
    for (std::size_t b = 0; b < layout_.buckets(); ++b) {
      std::vector<std::size_t> lengths;
      for (int rank = 0; rank < ranks(); ++rank) lengths.push_back(layout_.piece(b, rank, ranks()).size);
      lengths_.push_back(std::move(lengths));
      kept_at_.push_back(elements);
      elements += own_range(b).size;
    }
    kept_ = flat_buffer<P>(Sharding::shards_parameters ? elements : layout_.size(), memory);
  }

  flat_parameters(flat_parameters&&) = default;
  /// Not assignable: what is on its way must end before its memory does.
  flat_parameters& operator=(flat_parameters&&) = delete;

  const parameter_layout& layout() const noexcept { return layout_; }
  const Group& group() const noexcept { return group_; }
  int rank() const noexcept { return group_.shards->rank(); }
  int ranks() const noexcept { return group_.shards->size(); }

  /// Gives parameter `i` these values, of which this rank keeps its part. To be called with equal values on all ranks.
  void set(std::size_t i, std::span<const P> values) {
    check(i, "set");
    const element_range where = layout_.of(i);
    if (values.size() != where.size) {
      refuse("set: parameter '" + layout_[i].name + "' has " + std::to_string(where.size) + " elements, not " +
             std::to_string(values.size()));
    }
    const std::size_t b = layout_.bucket_of(i);
    wait(b);
    const element_range kept = Sharding::shards_parameters ? own_range(b) : layout_.bucket(b);
    const std::span<P> memory = Sharding::shards_parameters ? own(b) : whole(b);
    const std::size_t begin = std::max(kept.first, where.first), end = std::min(kept.end(), where.end());
    if (begin < end) {
      std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin - where.first), end - begin,
                  memory.begin() + static_cast<std::ptrdiff_t>(begin - kept.first));
    }
  }

  /// The values of parameter `i`. Waits while they are on their way. Raises `invalid_argument` if its bucket was not
  /// gathered, or released again.
  std::span<P> of(std::size_t i) {
    check(i, "of");
    const std::size_t b = layout_.bucket_of(i);
    wait(b);
    if constexpr (Sharding::shards_parameters) {
      if (gathered_[b].empty() && layout_.bucket(b).size > 0) {
        refuse("of: parameter '" + layout_[i].name + "' is not here whole: call gather(" + std::to_string(b) +
               "), on all ranks, before; and release it after");
      }
    }
    return whole(b).subspan(layout_.of(i).first - layout_.bucket(b).first, layout_.of(i).size);
  }

  /// What this rank updates of bucket `b`: all of it at stage 0, else a piece.
  std::span<P> own(std::size_t b) noexcept {
    const element_range range = own_range(b);
    return kept_.elements().subspan(Sharding::shards_parameters ? kept_at_[b] : range.first, range.size);
  }
  element_range own_range(std::size_t b) const noexcept {
    return Sharding::shards_states ? layout_.piece(b, rank(), ranks()) : layout_.bucket(b);
  }

  /// Begins to fetch the other ranks' pieces of bucket `b`. With zero<3>, nothing if they are here or on their way; with
  /// zero<1> and zero<2> they are fetched again, which is what an optimizer wants. Collective.
  void gather(std::size_t b) {
    if constexpr (!Sharding::shards_states) return;
    if (b >= layout_.buckets()) {
      refuse("gather(" + std::to_string(b) + "): there are " + std::to_string(layout_.buckets()) + " buckets");
    }
    if constexpr (Sharding::shards_parameters) {
      if (!gathered_[b].empty()) return;
      gathered_[b] = flat_buffer<P>(layout_.bucket(b).size, memory_);
    }
    wait(b);
    coming_[b] =
        all_gather_v_async(*group_.shards, std::span<const P>(own(b)), whole(b), counts{lengths_[b]}, options_, site_);
  }

  /// Waits until bucket `b` is here. What went wrong on the way is thrown.
  void wait(std::size_t b) {
    coming_[b].wait();
    coming_[b] = request();
  }

  /// Gives up what other ranks keep of bucket `b`; nothing before zero<3>.
  void release(std::size_t b) {
    if constexpr (Sharding::shards_parameters) {
      wait(b);
      gathered_[b] = {};
    }
  }

 private:
  [[noreturn]] void refuse(std::string reason) const {
    raise(errc::invalid_argument, std::move(reason),
          {.operation = "parameters", .rank = rank(), .ranks = ranks(), .site = site_});
  }
  void check(std::size_t i, const char* call) const {
    if (i >= layout_.parameters()) {
      refuse(std::string(call) + "(" + std::to_string(i) + "): there are " + std::to_string(layout_.parameters()) +
             " parameters, numbered from 0");
    }
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
  std::vector<std::vector<std::size_t>> lengths_;
  std::vector<std::size_t> kept_at_;
  flat_buffer<P> kept_;
  std::vector<flat_buffer<P>> gathered_;
  std::vector<request> coming_;  ///< the last member: what is on its way ends before its memory does
};

/// The parameters of `layout`, zero at first, kept as `Sharding` says by the ranks of `group`: a communicator, or
/// `hybrid(shards, replicas)`, which must outlive the result.
/// @param options those of the all_gather_v: an algorithm, a timeout …
/// @param memory where they are allocated; must outlive the result
template <class P, class Over, sharding_stage Sharding, call_options Options = options<>>
auto parameters(const Over& group, parameter_layout layout, Sharding, const Options& options = {},
                std::pmr::memory_resource* memory = std::pmr::get_default_resource(),
                const std::source_location& site = std::source_location::current()) {
  using group_type = decltype(detail::as_group(group));
  return flat_parameters<P, Sharding, group_type, Options>(detail::as_group(group), std::move(layout), options, memory,
                                                           site);
}

HOCKET_END_NAMESPACE
