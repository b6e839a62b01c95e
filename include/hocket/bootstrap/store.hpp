// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Stores: key-value storage of blobs (small byte strings), by which ranks find each other before any transport exists.
///
/// A `store` has `set` and `get`, or `gather` (the blobs of all ranks in one round trip), or all three. It may also offer
/// `add` (a counter). Start-up calls `exchange`, which works on any store, uses `gather` if present, and reports which
/// ranks are missing if some never join. The store is needed for start-up only.
///
///     auto world = hocket::bootstrap::read_environment();
///     auto store = hocket::bootstrap::connect_store(world, hocket::deadline::after(world.timeout));
///     auto addresses = hocket::bootstrap::exchange(store, "address", world.rank, world.ranks, my_address,
///                                                  hocket::deadline::after(world.timeout));
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/text.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap {

/// Key-value storage that all ranks of a job can reach. `set` stores or replaces a blob; `get` waits until the key
/// exists. When the limit ends the call, both raise `timeout` or `aborted`, and `peer_lost` if a rank has ended;
/// `aborted` names a peer only if start-up was cancelled on that peer. Only one thread at a time may use a store.
template <typename Store>
concept key_value_store = requires(Store& place, std::string_view key, byte_view value, const wait_limit& limit) {
  place.set(key, value, limit);
  { place.get(key, limit) } -> std::same_as<blob>;
};

/// A store with `gather(key, rank, ranks, value, limit)`: collects each rank's `value`, returns all in rank order.
template <typename Store>
concept has_gather = requires(Store& place, std::string_view key, byte_view value, const wait_limit& limit) {
  { place.gather(key, 0, 1, value, limit) } -> std::same_as<std::vector<blob>>;
};

/// What `exchange` accepts.
template <typename Store>
concept store = key_value_store<Store> || has_gather<Store>;

/// A store with counters: `add(key, summand, limit)` adds to a counter (which begins at 0) and returns the sum.
template <typename Store>
concept has_add = key_value_store<Store> && requires(Store& place, std::string_view key, const wait_limit& limit) {
  { place.add(key, std::int64_t{1}, limit) } -> std::same_as<std::int64_t>;
};

namespace detail {

/// Returns "rank 2 of 8 has", "ranks 2 and 5 of 8 have", or "ranks 1, 2, ... and 40 more of 99 have".
inline std::string ranks_have_text(const std::vector<int>& list, int ranks) {
  constexpr std::size_t most = 16;
  std::string text = list.size() == 1 ? "rank " : "ranks ";
  const std::size_t shown = list.size() <= most ? list.size() : most;
  for (std::size_t i = 0; i < shown; ++i) {
    if (i > 0) text += i + 1 == list.size() ? " and " : ", ";
    hocket::detail::append(text, {list[i]});
  }
  if (shown < list.size()) hocket::detail::append(text, {" and ", list.size() - shown, " more"});
  return hocket::detail::concat({text, " of ", ranks, list.size() == 1 ? " has" : " have"});
}

inline std::string missing_text(const std::vector<int>& missing, int ranks, std::chrono::nanoseconds waited) {
  return hocket::detail::concat(
      {ranks_have_text(missing, ranks), " not shown up after ", platform::seconds_text(waited)});
}

/// Returns the text that the other ranks get if a rank cancels start-up.
inline std::string cancelled_text(int rank, int ranks) {
  return hocket::detail::concat({"rank ", rank, " of ", ranks, " has cancelled start-up"});
}

inline error_context store_context(const char* operation, int rank, int ranks, int peer = -1) {
  error_context context;
  context.operation = operation;
  context.rank = rank;
  context.ranks = ranks;
  context.peer = peer;
  return context;
}

/// Restores a failure that another process wrote. An unknown code becomes a `mismatch` whose reason quotes the code and
/// the original reason; an invalid peer is omitted.
inline failure reported_failure(std::int64_t code, std::int32_t peer, std::string reason, int ranks) {
  const bool known = code >= static_cast<int>(errc::timeout) && code <= static_cast<int>(errc::system);
  if (!known) reason = hocket::detail::concat({"a failure of unknown kind (", code, ") was reported: '", reason, "'"});
  failure cause = make_failure(known ? static_cast<errc>(code) : errc::mismatch, std::move(reason));
  if (peer >= 0 && peer < ranks) cause.context.peer = peer;
  return cause;
}

/// Returns the time left until the limit, for error messages. Called when an exchange begins.
inline std::chrono::nanoseconds allowed_time(const wait_limit& limit) { return limit.until().left(); }

/// Implements `exchange` by `set` and `get` alone. Rank 0 collects the blobs and publishes under one key either all
/// blobs or, after a timeout, the failure. So every other rank waits for a single key.
template <key_value_store Store>
class generic_exchange {
 public:
  generic_exchange(Store& place, std::string_view prefix, int rank, int ranks, const wait_limit& limit)
      : place_(place), prefix_(prefix), rank_(rank), ranks_(ranks), limit_(limit), allowed_(allowed_time(limit)) {}

  std::vector<blob> operator()(byte_view mine) {
    place_.set(part_key(rank_), mine, limit_);
    if (rank_ == 0) return collect();
    blob merged = fetch_merged();
    blob_reader reader(merged);
    const auto code = reader.integer<std::int32_t>();
    const auto peer = reader.integer<std::int32_t>();
    if (code != 0) {
      failure peer_failure = reported_failure(code, peer, reader.rest_as_text(), ranks_);
      peer_failure.context = context(peer_failure.context.peer);
      raise(std::move(peer_failure));
    }
    std::vector<blob> all;
    if (!read_blobs(reader, ranks_, all)) {
      raise(errc::mismatch,
            hocket::detail::concat({"'", prefix_, "' does not hold a blob for each rank: was it used before?"}),
            context(0));
    }
    return all;
  }

 private:
  std::string part_key(int rank) const { return hocket::detail::concat({prefix_, '/', rank}); }
  std::string merged_key() const { return prefix_ + "/all"; }
  error_context context(int peer) const { return store_context("exchange", rank_, ranks_, peer); }

  void publish(std::int32_t code, std::int32_t peer, byte_view body, const wait_limit& limit) {
    blob merged;
    append_integer(merged, code);
    append_integer(merged, peer);
    append_bytes(merged, body);
    place_.set(merged_key(), merged, limit);
  }

  std::vector<blob> collect() {
    std::vector<blob> all(static_cast<std::size_t>(ranks_));
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::error_code end = try_get(part_key(rank), limit_, all[static_cast<std::size_t>(rank)]);
      if (!end) continue;
      failure cause = missing_failure(end, rank, "rank 0 has not continued");
      if (end == errc::timeout) {
        publish(static_cast<std::int32_t>(errc::timeout), cause.context.peer, text_bytes(cause.reason), brief());
      }
      raise(std::move(cause));
    }
    publish(0, -1, joined_blobs(all), limit_);
    return all;
  }

  /// Returns what rank 0 published. Waits 200 ms longer than the limit, because rank 0 has about the same limit, and
  /// only then publishes which ranks are missing.
  blob fetch_merged() {
    blob merged;
    const std::error_code end = try_get(merged_key(), limit_.later_by(std::chrono::milliseconds(200)), merged);
    if (end) raise(missing_failure(end, 0, hocket::detail::concat({"rank 0 has not published '", prefix_, "'"})));
    return merged;
  }

  /// Returns the failure of a wait that ended with `end`: which ranks from `first` on are missing, else `otherwise`.
  failure missing_failure(std::error_code end, int first, const std::string& otherwise) {
    const bool cancelled = end == errc::aborted;
    const std::chrono::nanoseconds waited = cancelled ? deadline::clock::now() - begin_ : allowed_;
    const missing_ranks found =
        look_for_missing(first, cancelled ? deadline::after(std::chrono::milliseconds(3)) : deadline());
    std::string text;
    int peer = 0;
    if (!found.list.empty()) {
      text = missing_text(found.list, ranks_, waited);
      peer = found.list.front();
    } else {
      text = hocket::detail::concat({otherwise, " after ", platform::seconds_text(waited)});
      if (!found.all_looked_at) {
        text += ", and there was no time to check which ranks are missing";
        peer = -1;
      }
    }
    if (cancelled) text.insert(0, "start-up was cancelled: ");
    return {end, std::move(text), context(peer)};
  }

  struct missing_ranks {
    std::vector<int> list;
    bool all_looked_at;
  };

  /// Finds the ranks, from `first` on, whose blob is missing. Checks rank `first`, and further ranks until `enough`.
  missing_ranks look_for_missing(int first, deadline enough) {
    missing_ranks found{{}, false};
    blob ignored;
    int rank = first;
    do {
      if (try_get(part_key(rank), wait_limit(deadline::after({})), ignored)) found.list.push_back(rank);
    } while (++rank < ranks_ && !enough.passed());
    found.all_looked_at = rank == ranks_;
    return found;
  }

  static wait_limit brief() { return wait_limit(deadline::after(std::chrono::seconds(1))); }

  /// Gets a value. Returns `timeout`, or `aborted` if this rank cancelled start-up; throws other errors of the store.
  /// Without exceptions, any error of the store ends the program.
  std::error_code try_get(const std::string& key, const wait_limit& limit, blob& result) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      result = place_.get(key, limit);
    } catch (const error& cause) {
      const bool aborted_here = cause.code() == errc::aborted && cause.context().peer < 0;
      if (!aborted_here && cause.code() != errc::timeout) throw;
      return cause.code();
    }
#else
    result = place_.get(key, limit);
#endif
    return {};
  }

  Store& place_;
  std::string prefix_;
  int rank_;
  int ranks_;
  wait_limit limit_;
  std::chrono::nanoseconds allowed_;
  deadline::clock::time_point begin_ = deadline::clock::now();
};

}  // namespace detail

/// Gives every rank the blobs of all ranks, in rank order.
///
/// Collective: every rank passes the same `prefix`, which no earlier exchange on this store used, and the same `ranks`.
/// Blobs may differ in size. **Cost.** One request if the store has `gather`; else two, but `ranks` + 2 on rank 0.
/// **Errors.** `timeout`: the reason names the missing ranks, and `context.peer` the first; `aborted`: start-up was
/// cancelled on this rank, and the reason names the missing ranks, or on `context.peer`; `peer_lost`: a rank joined and
/// left; `mismatch`: ranks disagree on `ranks`, or `prefix` was used before; `invalid_argument`: no such `rank`.
template <store Store>
std::vector<blob> exchange(Store& place, std::string_view prefix, int rank, int ranks, byte_view mine,
                           const wait_limit& limit) {
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    raise(errc::invalid_argument,
          hocket::detail::concat({"rank ", rank, " of ", ranks, " is not a rank: give 0 <= rank < ranks"}),
          detail::store_context("exchange", rank, ranks));
  }
  if constexpr (has_gather<Store>) {
    return place.gather(prefix, rank, ranks, mine, limit);
  } else {
    return detail::generic_exchange<Store>(place, prefix, rank, ranks, limit)(mine);
  }
}

}  // namespace bootstrap

HOCKET_END_NAMESPACE
