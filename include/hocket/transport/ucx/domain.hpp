// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The transport whose ranks are processes: those of one host communicate through shared memory where the host and UCX's
/// settings allow it, and others by UCX's messages.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/ucx/agreed_costs.hpp>
#include <hocket/transport/ucx/connection_way.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/endpoint_group.hpp>
#include <hocket/transport/ucx/process_address.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// One process's membership in a world. All communicators that are split from the world's communicator share it.
class domain {
 public:
  using endpoints_type = endpoint_group;
  static constexpr const char* name = "ucx";

  domain(std::shared_ptr<connections> links, connection_settings settings, int ranks_per_core, bool is_device_aware)
      : links_(std::move(links)), settings_(std::move(settings)), ranks_per_core_(ranks_per_core),
        is_device_aware_(is_device_aware) {}

  /// Joins a world of these processes as `rank`. Collective over the processes; connects to none of them yet. Returns
  /// null on all ranks if UCX can't start on one, and the reason in `cause`.
  static std::shared_ptr<domain> join(int rank, const std::vector<process_identity>& processes,
                                      const connection_settings& settings, const transport::exchange_function& exchange,
                                      failure& cause) {
    const process_identity& own = processes[static_cast<std::size_t>(rank)];
    const host_share here = share_of_host(own, processes);
    const bool watches_memory = all_watched_in_memory(own, processes);
    std::shared_ptr<worker> through = make_worker(processes, here.ranks, watches_memory, settings, cause);
    auto addresses = exchange(cause ? encode_unreachable(cause) : encode_address(*through));
    if (cause) return nullptr;
    std::vector<process_address> all;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      cause = unreachable_reason(static_cast<int>(i), addresses[i]);
      if (cause) return nullptr;
      all.push_back(decode_address(processes[i], std::move(addresses[i])));
    }
    const bool carry = std::all_of(all.begin(), all.end(), [](const auto& each) { return each.is_device_aware; });
    return std::make_shared<domain>(std::make_shared<connections>(std::move(through), rank, std::move(all)), settings,
                                    (here.ranks + here.cores - 1) / here.cores, carry);
  }

  /// Makes a domain with another worker and new connections. UCX's queue in shared memory is one for all senders: a
  /// process that was killed while it wrote there has left a gap, and messages behind the gap do not arrive.
  static std::shared_ptr<domain> renewed(const std::shared_ptr<domain>& self, transport::open_parameters& how) {
    std::vector<process_identity> processes;
    for (const int rank : *how.members) processes.push_back(self->links_->identity_of(rank));
    auto members = std::make_shared<std::vector<int>>(processes.size());
    std::iota(members->begin(), members->end(), 0);
    how.members = std::move(members);
    how.context = 0;
    failure cause;
    std::shared_ptr<domain> made = join(how.rank, processes, self->settings_, how.exchange, cause);
    if (cause) raise(std::move(cause));
    made->costs_on_host_ = self->costs_on_host_;
    return made;
  }

  int rank() const noexcept { return links_->rank(); }
  int size() const noexcept { return links_->size(); }
  transport::contexts& contexts() noexcept { return contexts_; }
  bool in_forked_child() const noexcept { return links_->in_forked_child(); }
  transport::link_costs costs() const noexcept { return costs_.current; }
  const transport::world_costs& agreed_costs() const noexcept { return costs_; }
  /// Returns whether UCX is device-aware on every rank.
  bool is_device_aware() const noexcept { return is_device_aware_; }

  /// Connects to `rank` now instead of on first use. Returns the reason if that fails.
  failure reach(int rank) { return links_->reach(rank); }
  /// Waits at most 100 ms until these ranks have connected to this one, too.
  void await_greetings(std::initializer_list<int> ranks) { links_->await_greetings(ranks); }
  /// Exchanges a message with each of these ranks, which do the same. See `connections::try_messages`.
  failure try_messages(const std::vector<int>& ranks, const wait_limit& limit) {
    return links_->try_messages(ranks, limit);
  }

  /// Names of UCX's transports that messages to `rank` of the world use; connects if necessary.
  std::vector<std::string> transports_to(int rank) {
    const std::lock_guard guard(links_->lock());
    if (links_->connect(rank, false) != UCS_OK) return {};
    return links_->link_to(rank).transports();
  }

  static std::unique_ptr<endpoint_group> open(const std::shared_ptr<domain>& self,
                                              const transport::open_parameters& how) {
    auto made = std::make_unique<endpoint_group>(self->links_, how, self->ranks_per_core_,
                                                 self->settings_.way == connection_way::memory);
    // Context 0 is the communicator of the whole world, whose members have agreed on `windows_reachable()`.
    if (how.context == 0) self->set_costs(*made, how);
    return made;
  }

 private:
  /// Returns null if the worker can't be made, and the reason in `cause`, which the other ranks must learn.
  static std::shared_ptr<worker> make_worker(const std::vector<process_identity>& processes, int ranks_on_host,
                                             bool watches_memory, const connection_settings& settings, failure& cause) {
    const int ranks = static_cast<int>(processes.size());
#if HOCKET_HAS_EXCEPTIONS
    try {
      return std::make_shared<worker>(ranks, ranks_on_host, watches_memory, settings);
    } catch (const error& caught) {
      cause = caught.cause();
    }
    return nullptr;
#else
    static_cast<void>(cause);
    return std::make_shared<worker>(ranks, ranks_on_host, watches_memory, settings);
#endif
  }

  void set_costs(const endpoint_group& made, const transport::open_parameters& how) {
    costs_ = {network_costs(), network_costs()};
    if (!made.windows_reachable()) return;
    if (!costs_on_host_) costs_on_host_ = agree_on_costs(links_, made, how);
    costs_ = *costs_on_host_;
  }

  const std::shared_ptr<connections> links_;
  const connection_settings settings_;
  const int ranks_per_core_;
  const bool is_device_aware_;
  transport::contexts contexts_;
  transport::world_costs costs_{network_costs(), network_costs()};
  std::optional<transport::world_costs> costs_on_host_;  ///< set once; `renewed` passes them on
};

static_assert(transport::domain<domain>);

}  // namespace ucx
HOCKET_END_NAMESPACE
