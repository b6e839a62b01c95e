// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/group/ucx.hpp>: start-up.
#pragma once

#include <hocket/bootstrap/any_store.hpp>
#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/connect_store.hpp>
#include <hocket/bootstrap/environment.hpp>
#include <hocket/bootstrap/store.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/window.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/shared_pages.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/text.hpp>
#include <hocket/group/ucx.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/ucx/arrival.hpp>
#include <hocket/transport/ucx/connection_way.hpp>
#include <hocket/transport/ucx/domain.hpp>
#include <hocket/transport/ucx/endpoint_group.hpp>
#include <hocket/transport/ucx/network_description.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/status.hpp>
#include <hocket/transport/ucx/trial_partners.hpp>
#include <hocket/transport/ucx/workarounds/leftover_segments.hpp>
#include <hocket/transport/ucx/workarounds/silent_trial.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {
namespace detail {

/// Start-up of one rank.
class start_up {
 public:
  start_up(const bootstrap::world_description& world, bootstrap::any_store store, deadline until,
           const connect_options& options)
      : world_(world), options_(options), until_(until), store_(std::move(store)) {}
  start_up(const start_up&) = delete;
  start_up& operator=(const start_up&) = delete;

  communicator run() {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return join_and_finish();
    } catch (const error& cause) {
      failure found = cause.cause();
      if (!store_failed_) store_.report_failure(found);
      if (found.code == errc::peer_lost && !store_failed_ && store_.obeys_limits())
        found = what_came_first(std::move(found));
      found.context.operation = "connect";  // whichever step found it
      raise(std::move(found));
    }
#else
    return join_and_finish();
#endif
  }

 private:
  static std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

  communicator join_and_finish() {
    communicator made = join();
    store_.finish();
    return made;
  }

  communicator join() {
    const transport::exchange_function exchange = [this](std::span<const std::byte> blob) {
      return this->exchange(blob);
    };
    exchange_arrivals();
    remove_leftover_segments();
    std::shared_ptr<domain> through = join_by_first_way(exchange);
    auto members = std::make_shared<std::vector<int>>(index(world_.ranks));
    std::iota(members->begin(), members->end(), 0);
    transport::open_parameters how;
    how.members = std::move(members);
    how.rank = world_.rank;
    how.exchange = exchange;
    return communicator(std::move(through), std::move(how), options_.staging_bytes);
  }

  /// Returns a domain in which a trial has succeeded. Tries the ways one after the other; all ranks agree on the first
  /// that works.
  std::shared_ptr<domain> join_by_first_way(const transport::exchange_function& exchange) {
    const std::vector<connection_settings> ways = ways_to_connect(world_.rank, identities_, networks_);
    failure found;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const connection_settings& each = ways[i];
      if (each.shares_memory && has_other_ways(ways, i) && !may_share_memory()) continue;
      if (!each.shares_memory && found && fails_between_hosts(found)) break;  // which shares no memory anyway
      std::shared_ptr<domain> through;
      failure cause = try_way(each, ways.size() - i, exchange, through);
      if (!cause) return through;
      if (!each.name.empty() && cause.code != errc::peer_lost)
        cause.reason = hocket::detail::concat({each.name, ": ", cause.reason});
      if (found) cause.reason = hocket::detail::concat({found.reason, "; ", cause.reason});
      found = std::move(cause);
      if (found.code == errc::peer_lost || found.code == errc::invalid_argument) break;
    }
    const int reporter = found.context.rank, peer = found.context.peer;
    if (reporter >= 0 && peer >= 0) found.reason += advice(ways.back().way, reporter, peer);
    if (reporter >= 0 && reporter != world_.rank) found.context.peer = reporter;
    found.context.operation = "connect";
    found.context.rank = world_.rank;
    found.context.ranks = world_.ranks;
    raise(std::move(found));
  }

  static bool has_other_ways(const std::vector<connection_settings>& ways, std::size_t i) {
    return std::any_of(ways.begin() + static_cast<std::ptrdiff_t>(i), ways.end(),
                       [](const auto& each) { return !each.shares_memory; });
  }

  /// Returns whether no rank knows a reason why ranks of a host can't share memory. Collective in the first call.
  bool may_share_memory() {
    if (!may_share_memory_) may_share_memory_ = agree(may_open_files_of(identities_[index(world_.rank)], identities_));
    return *may_share_memory_;
  }

  bool fails_between_hosts(const failure& found) const {
    const int rank = found.context.rank, peer = found.context.peer;
    return rank >= 0 && peer >= 0 && !identities_[index(rank)].same_host(identities_[index(peer)]);
  }

  /// Joins the world by one of `ways_left` ways that may have to be tried within the deadline. Returns the same failure
  /// on all ranks, or none and the domain in `through`.
  failure try_way(const connection_settings& how, std::size_t ways_left, const transport::exchange_function& exchange,
                  std::shared_ptr<domain>& through) {
    const silent_trial silent;
    failure cause;
    through = domain::join(world_.rank, identities_, how, exchange, cause);
    if (!cause) cause = how.way == connection_way::memory ? try_neighbour(*through) : try_messages(through, ways_left);
    if (cause) through.reset();
    return cause;
  }

  /// Returns whether all ranks pass true.
  bool agree(bool mine) {
    const std::byte own{mine ? std::uint8_t{1} : std::uint8_t{0}};
    const auto all = exchange({&own, 1});
    return std::all_of(all.begin(), all.end(), [](const auto& each) { return each == bootstrap::blob{std::byte{1}}; });
  }

#if HOCKET_HAS_EXCEPTIONS
  /// If a peer is gone, perhaps only because another peer was lost first, asks the store: it reports which rank was
  /// lost first to a rank that waits for all ranks once more.
  failure what_came_first(failure found) {
    try {
      bootstrap::exchange(store_, "ucx.lost", world_.rank, world_.ranks, {},
                          wait_limit(deadline::after(std::chrono::seconds(1)), options_.stop));
    } catch (const error& cause) {
      if (cause.code() == errc::aborted) return cause.cause();
      if (cause.code() == errc::peer_lost && cause.context().peer != world_.rank) return cause.cause();
    }
    return found;
  }
#endif

  std::vector<bootstrap::blob> exchange(bootstrap::byte_view mine) {
    store_failed_ = true;  // unless it returns
    auto all = bootstrap::exchange(store_, hocket::detail::concat({"ucx.", ++round_}), world_.rank, world_.ranks, mine,
                                   wait_limit(until_, options_.stop));
    store_failed_ = false;
    return all;
  }

  /// Exchanges identities and networks. Fails on all ranks if they differ in what must be equal on all ranks.
  void exchange_arrivals() {
    const arrival own = own_arrival(options_.staging_bytes, store_.connection());
    for (const auto& blob : exchange(encode_arrival(own))) {
      const int rank = static_cast<int>(identities_.size());
      std::optional<arrival> each = arrival_from(blob);
      std::string reason = each ? difference(own, world_.rank, *each, rank)
                                : hocket::detail::concat({"rank ", rank, " runs another version of hocket"});
      if (!reason.empty()) raise(errc::mismatch, std::move(reason), {.peer = rank});
      identities_.push_back(each->who);
      networks_.push_back(std::move(each->network));
    }
  }

  /// Finds unusable settings early, and returns the reason, on all ranks: no rank leaves before the others know it.
  /// Connections that are late are no failure: calls through shared memory do not use them.
  failure try_neighbour(domain& through) {
    const int next = (world_.rank + 1) % world_.ranks, previous = (world_.rank + world_.ranks - 1) % world_.ranks;
    failure cause;
    const platform::shared_pages held = memory_like_window(cause);  // until all ranks have theirs beside it
    if (!cause) cause = through.reach(next);
    if (!cause) through.await_greetings({next, previous});
    if (cause) cause.reason = hocket::detail::concat({"rank ", world_.rank, " reports: ", cause.reason});
    return first_report(cause);
  }

  /// Returns memory as large as this rank's window will be. Fails if it has none that others can open: because this host
  /// does not offer that, or because the program has chosen a window that is too large.
  platform::shared_pages memory_like_window(failure& cause) const {
    const auto make = [&](std::size_t staging_bytes, failure& fail) {
      const hocket::detail::window_layout window{index(world_.ranks), staging_bytes};
      return platform::shared_pages(piece_layout(window.ranks, window.size()).end, fail);
    };
    failure found;
    platform::shared_pages made = make(options_.staging_bytes, found);
    if (!made.lacks_file() || world_.ranks == 1) return made;  // the communicator reports other failures
    const std::size_t by_default = connect_options().staging_bytes;
    failure no_default;
    if (options_.staging_bytes > by_default) make(by_default, no_default);
    if (options_.staging_bytes > by_default && !no_default) {
      found.code = make_error_code(errc::invalid_argument);
      hocket::detail::append(found.reason, {"; staging_bytes=", options_.staging_bytes,
                                            " is too much for this host, and the default, ", by_default, ", is not"});
    }
    cause = std::move(found);
    return made;
  }

  /// Exchanges messages with other ranks, and returns the first failure of a rank, on all ranks.
  failure try_messages(std::shared_ptr<domain>& through, std::size_t ways_left) {
    // A lost packet of a connection attempt is repeated after 1 s, and again after 3 and 7 s.
    const std::chrono::nanoseconds longest = std::chrono::milliseconds(ways_left > 1 ? 3500 : 7500);
    const auto share = until_.left() / static_cast<std::int64_t>(ways_left + 1);
    const wait_limit limit(deadline::after(std::min(longest, std::chrono::nanoseconds(share))), options_.stop);
    const auto begin = deadline::clock::now();
    failure cause = through->try_messages(trial_partners(world_.rank, identities_), limit);
    if (cause && !limit.aborted()) through.reset();  // which ends the wait of ranks that have reached this one
    if (cause.code == errc::timeout)
      hocket::detail::append(cause.reason, {" after ", platform::seconds_text(deadline::clock::now() - begin)});
    if (cause) {
      cause.reason = hocket::detail::concat(
          {"rank ", world_.rank, " can't exchange messages with rank ", cause.context.peer, ": ", cause.reason});
    }
    return first_report(cause);
  }

  /// Returns the same failure on all ranks, so that no rank leaves before the others know it: the one that is most
  /// likely the cause of the others. `context` has the rank and its peer. A rank that has lost a peer returns at once:
  /// the store informs the others.
  failure first_report(const failure& own) {
    if (own.code == errc::peer_lost) return own;
    bootstrap::blob mine;
    if (own) {
      bootstrap::detail::append_integer(mine, static_cast<std::int32_t>(own.code.value()));
      bootstrap::detail::append_integer(mine, std::int32_t{own.context.peer});
      bootstrap::detail::append_bytes(mine, bootstrap::text_bytes(own.reason));
    }
    std::vector<failure> reports;
    for (const bootstrap::blob& each : exchange(mine)) reports.push_back(read_report(each, reports.size()));
    const auto first = std::max_element(reports.begin(), reports.end(), [&](const failure& a, const failure& b) {
      return likelihood(a, reports) < likelihood(b, reports);
    });
    if (first->code == errc::timeout) first->code = make_error_code(errc::unreachable);
    return *first;
  }

  failure read_report(const bootstrap::blob& bytes, std::size_t rank) const {
    failure result;
    if (bytes.empty()) return result;
    bootstrap::detail::blob_reader reader(bytes);
    const auto code = reader.integer<std::int32_t>(), peer = reader.integer<std::int32_t>();
    result = bootstrap::detail::reported_failure(code, peer, reader.rest_as_text(), world_.ranks);
    result.context.rank = static_cast<int>(rank);
    return result;
  }

  /// Compares how likely reports are the cause of the others, not a consequence: a rank that fails closes its
  /// connections, which fails its peers, those of its host included. So most likely are two ranks that name each other,
  /// and ranks of different hosts; a rank whose wait has timed out may wait for one that has failed.
  std::tuple<bool, bool, bool, bool> likelihood(const failure& report, const std::vector<failure>& all) const {
    if (!report) return {};
    const int rank = report.context.rank, peer = report.context.peer;
    const bool names_a_peer = peer >= 0 && peer < world_.ranks;
    const bool is_between_hosts = names_a_peer && !identities_[index(rank)].same_network(identities_[index(peer)]);
    const bool is_mutual = names_a_peer && all[index(peer)] && all[index(peer)].context.peer == rank;
    return {true, is_between_hosts, is_mutual, report.code != errc::timeout};
  }

  /// Describes the interfaces of both sides, and the remedy, after two ranks have failed to connect by this way.
  std::string advice(connection_way way, int rank, int peer) const {
    if (way == connection_way::memory) return {};
    if (way == connection_way::loopback) {
      const auto chosen =
          std::find_if(networks_.begin(), networks_.end(), [](const auto& each) { return each.user_has_chosen; });
      if (chosen == networks_.end())
        return "; ranks of one host that can't share memory need its loopback interface: `ip link set lo up`";
      return hocket::detail::concat(
          {"; ", variable_text("UCX_TLS"), ", ", variable_text("UCX_NET_DEVICES"), " on rank ", rank,
           ": ranks of one host that can't share memory need the transport tcp and the interface lo"});
    }
    const auto interfaces = [&](int of) { return networks_[index(of)].text(); };
    return hocket::detail::concat({"; rank ", rank, " has ", interfaces(rank), "; rank ", peer, " has ",
                                   interfaces(peer), "; ", variable_text("UCX_NET_DEVICES"),
                                   ": set it on every rank to interfaces by which all hosts reach each other"});
  }

  const bootstrap::world_description& world_;
  const connect_options& options_;
  const deadline until_;
  bootstrap::any_store store_;
  std::vector<process_identity> identities_;
  std::vector<network_description> networks_;
  std::optional<bool> may_share_memory_;  ///< what the ranks have agreed on
  int round_ = 0;
  bool store_failed_ = false;  ///< the store has reported the first lost rank, or is gone itself
};

/// Catches, so that an error unwinds the stack even in a program without a handler: otherwise the program would
/// terminate before the destructor of rank 0's store sends its last messages to the other ranks.
template <class OpenStore>
communicator start_up_unwinding(const bootstrap::world_description& world, std::chrono::nanoseconds timeout,
                                const connect_options& options, const OpenStore& open_store) {
  const deadline until = deadline::after(timeout);
#if HOCKET_HAS_EXCEPTIONS
  try {
    return start_up(world, open_store(wait_limit(until, options.stop)), until, options).run();
  } catch (...) {
    throw;
  }
#else
  return start_up(world, open_store(wait_limit(until, options.stop)), until, options).run();
#endif
}

template <class OpenStore>
communicator connect_by(const bootstrap::world_description& world, const connect_options& options,
                        const OpenStore& open_store) {
  const std::chrono::nanoseconds timeout = options.timeout.count() > 0 ? options.timeout : world.timeout;
  communicator made = start_up_unwinding(world, timeout, options, open_store);
  made.set_timeout(timeout);
  made.set_flight_recorder(world.flight_recorder);
  return made;
}

HOCKET_DECL communicator connect_world(const bootstrap::world_description& world, const connect_options& options) {
  return connect_by(world, options, [&](const wait_limit& limit) { return bootstrap::connect_store(world, limit); });
}

HOCKET_DECL communicator connect_through(bootstrap::any_store store, const bootstrap::world_description& world,
                                         const connect_options& options) {
  return connect_by(world, options, [&](const wait_limit&) { return std::move(store); });
}

}  // namespace detail

HOCKET_DECL communicator connect(const connect_options& options) {
  return connect(bootstrap::read_environment(), options);
}

}  // namespace ucx
HOCKET_END_NAMESPACE
