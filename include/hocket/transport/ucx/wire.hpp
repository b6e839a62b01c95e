// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The transport whose ranks are processes, on one host or many: messages through UCX, and peers' memory directly where
/// the hosts and UCX's transports allow it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/introduction.hpp>
#include <hocket/transport/ucx/port.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// One process's membership in a world. All communicators that are split from the world's share it.
class wire {
 public:
  using port_type = port;
  static constexpr const char* name = "ucx";

  wire(std::shared_ptr<connections> links, bool oversubscribed, bool carries_device_memory)
      : links_(std::move(links)), oversubscribed_(oversubscribed), carries_device_memory_(carries_device_memory) {}

  /// Rank `rank` of a world whose ranks are those processes. Collective over them; connects to none of them yet.
  static std::shared_ptr<wire> join(int rank, const std::vector<process_identity>& processes,
                                    const transport::exchange_function& exchange) {
    const process_identity& own = processes[static_cast<std::size_t>(rank)];
    const host_share here = share_of_host(own, processes);
    failure cause;
    std::shared_ptr<worker> through = make_worker(processes, here.ranks, all_watched_in_memory(own, processes), cause);
    auto ways = exchange(cause ? no_ways(cause) : ways_to(*through));
    if (cause) raise(std::move(cause));
    std::vector<introduction> all;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (failure theirs = why_no_ways(static_cast<int>(i), ways[i])) raise(std::move(theirs));
      all.push_back(introduce(processes[i], std::move(ways[i])));
    }
    const bool carry = std::all_of(all.begin(), all.end(), [](const auto& each) { return each.carries_device_memory; });
    return std::make_shared<wire>(std::make_shared<connections>(std::move(through), rank, std::move(all)),
                                  here.ranks > here.cores, carry);
  }

  /// Another worker, with connections of its own: a process that died while it wrote into a queue of UCX's in shared
  /// memory, which is one for all senders, has left a gap there behind which nothing arrives.
  static std::shared_ptr<wire> renewed(const std::shared_ptr<wire>& self, transport::opening& how) {
    std::vector<process_identity> processes;
    for (const int rank : *how.members) processes.push_back(self->links_->identity_of(rank));
    auto members = std::make_shared<std::vector<int>>(processes.size());
    std::iota(members->begin(), members->end(), 0);
    how.members = std::move(members);
    how.context = 0;
    return join(how.rank, processes, how.exchange);
  }

  int rank() const noexcept { return links_->rank(); }
  int size() const noexcept { return links_->size(); }
  transport::contexts& contexts() noexcept { return contexts_; }
  bool in_a_copy() const noexcept { return links_->in_a_copy(); }
  transport::link_costs costs() const noexcept { return costs_; }
  /// Whether the UCX of each rank does.
  bool carries_device_memory() const noexcept { return carries_device_memory_; }

  /// Connections are made on first use. This one is made now. Why it can't be, if it can't.
  failure reach(int rank) { return links_->reach(rank); }

  /// Names of UCX's transports that messages to `rank` of the world go through; connects if need be.
  std::vector<std::string> transports_to(int rank) {
    const std::lock_guard guard(links_->lock());
    if (links_->connect(rank, false) != UCS_OK) return {};
    return links_->link_to(rank).transports();
  }

  static std::unique_ptr<port> open(const std::shared_ptr<wire>& self, const transport::opening& how) {
    auto made = std::make_unique<port>(self->links_, how, self->oversubscribed_);
    // The first is that of the whole world; what its members agreed on is equal everywhere.
    if (how.context == 0) self->costs_ = made->windows_reachable() ? one_host() : network();
    return made;
  }

 private:
  /// Null if there is none, and `cause` says why: the other ranks are to hear that.
  static std::shared_ptr<worker> make_worker(const std::vector<process_identity>& processes, int ranks_on_host,
                                             bool watches_memory, failure& cause) {
    const int ranks = static_cast<int>(processes.size());
#if HOCKET_HAS_EXCEPTIONS
    try {
      return std::make_shared<worker>(ranks, ranks_on_host, watches_memory);
    } catch (const error& caught) {
      cause = caught.cause();
    }
    return nullptr;
#else
    static_cast<void>(cause);
    return std::make_shared<worker>(ranks, ranks_on_host, watches_memory);
#endif
  }

  /// Measured roughly; only the proportions matter for the choice of an algorithm.
  static constexpr transport::link_costs one_host() noexcept { return {4.2e-7, 1.1e-10, 1.8e-7, 2e-11, 2.5e-11}; }
  static constexpr transport::link_costs network() noexcept { return {1e-5, 2.5e-10, 1.8e-7, 2e-11, 2.5e-11}; }

  const std::shared_ptr<connections> links_;
  const bool oversubscribed_;
  const bool carries_device_memory_;
  transport::contexts contexts_;
  transport::link_costs costs_ = network();
};

static_assert(transport::wire<wire>);

}  // namespace ucx
HOCKET_END_NAMESPACE
