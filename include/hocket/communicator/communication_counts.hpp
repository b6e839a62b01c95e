// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What one rank has done on one communicator: calls, bytes and time by kind of call, and bytes by peer.
///
/// The thread that is in a call counts; any thread may read at any time. The counts outlive their communicator for as
/// long as a reader has them.
#pragma once

#include <hocket/communicator/traffic.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/cpu.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/core/published_count.hpp>
#include <hocket/plan/plan.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// What a call is counted as: the collective (forms for blocks of different lengths included), or a message.
enum class call_kind : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  barrier,
  reduce,
  gather,
  scatter,
  send,
  recv,
  send_recv
};
inline constexpr std::size_t call_kinds = 12;  ///< number of kinds

/// Returns the kind of a collective.
constexpr call_kind kind_of(plan::collective_kind what) noexcept { return static_cast<call_kind>(what); }
static_assert(kind_of(plan::collective_kind::all_reduce) == call_kind::all_reduce &&
              kind_of(plan::collective_kind::scatter) == call_kind::scatter);

/// Returns the name of the call: "all_reduce".
constexpr const char* to_string(call_kind kind) noexcept {
  if (kind == call_kind::send) return "send";
  if (kind == call_kind::recv) return "recv";
  if (kind == call_kind::send_recv) return "send_recv";
  return plan::to_string(static_cast<plan::collective_kind>(kind));
}

namespace detail {

/// Calls of one kind. Bytes are those of `traffic`. Ticks are those of the calls that were timed: see `timed_call`.
struct call_counts {
  published_count calls, sent, read, ticks;
};

/// Bytes between this rank and one peer.
struct peer_counts {
  published_count sent, received, read;
};

class communication_counts {
 public:
  /// @param members ranks of the members in the domain
  /// @param rank number of this rank among them
  /// @param ranks number of ranks of the domain
  communication_counts(std::shared_ptr<const std::vector<int>> members, int rank, int ranks)
      : members_(std::move(members)), rank_(rank), ranks_(ranks),
        blocks_(std::make_unique<std::atomic<block*>[]>((members_->size() + peers_per_block - 1) / peers_per_block)) {
    // Now, so that calls of most communicators allocate no memory to count.
    blocks_[0].store(new block, std::memory_order_relaxed);
  }
  communication_counts(const communication_counts&) = delete;
  communication_counts& operator=(const communication_counts&) = delete;
  ~communication_counts() {
    for (std::size_t i = 0; i * peers_per_block < members_->size(); ++i) delete blocks_[i].load();
  }

  // ── In a call ────────────────────────────────────────────────────────────────────────────────────────────────────

  call_counts& of(call_kind kind) noexcept { return kinds_[static_cast<std::size_t>(kind)]; }
  void note_call(call_kind kind) noexcept { of(kind).calls.add(1); }
  /// Time in which a call kept its thread from computing.
  void note_exposed(std::uint64_t ticks) noexcept { exposed_.add(ticks); }

  void note_sent(call_kind kind, int peer, std::size_t bytes) noexcept {
    of(kind).sent.add(bytes);
    if (peer_counts* const its = with(peer)) its->sent.add(bytes);
  }
  void note_received(int peer, std::size_t bytes) noexcept {
    if (peer_counts* const its = with(peer)) its->received.add(bytes);
  }
  void note_read(call_kind kind, int peer, std::size_t bytes) noexcept {
    of(kind).read.add(bytes);
    if (peer_counts* const its = with(peer)) its->read.add(bytes);
  }

  /// Counts a vector that the direct path of all_reduce sends to every other rank, and one that it has received from
  /// every other rank. They are spread over the peers when they are read.
  void note_pushed_to_each(std::size_t bytes) noexcept { pushed_.add(bytes); }
  void note_arrived_from_each(std::size_t bytes) noexcept { arrived_.add(bytes); }

  /// States that the communicator is destroyed: nothing is counted any more.
  void end() noexcept { has_ended_.store(true, std::memory_order_release); }

  // ── Any thread ───────────────────────────────────────────────────────────────────────────────────────────────────

  /// Returns whether the counts that are read from now on are the last ones.
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }
  /// A point in time after which nothing was counted yet.
  const platform::tick_mark& begin() const noexcept { return begin_; }
  const std::vector<int>& members() const noexcept { return *members_; }
  int ranks() const noexcept { return ranks_; }

  std::uint64_t calls(call_kind kind) const noexcept { return of(kind).calls.value(); }
  std::uint64_t ticks(call_kind kind) const noexcept { return of(kind).ticks.value(); }
  std::uint64_t exposed_ticks() const noexcept { return exposed_.value(); }

  traffic moved(call_kind kind) const noexcept {
    const std::uint64_t pushed = kind == call_kind::all_reduce ? pushed_.value() * (members_->size() - 1) : 0;
    return {of(kind).sent.value() + pushed, of(kind).read.value()};
  }
  traffic moved() const noexcept {
    traffic all;
    for (std::size_t kind = 0; kind < call_kinds; ++kind) all += moved(static_cast<call_kind>(kind));
    return all;
  }

  /// Bytes between this rank and a peer.
  struct peer_bytes {
    std::uint64_t sent = 0, received = 0, read = 0;
  };
  peer_bytes with_peer(int peer) const noexcept {
    const auto place = static_cast<std::size_t>(peer);
    const block* const its = blocks_[place / peers_per_block].load(std::memory_order_acquire);
    peer_bytes result;
    if (peer != rank_) result = {pushed_.value(), arrived_.value(), 0};
    if (its == nullptr) return result;
    const peer_counts& counted = (*its)[place % peers_per_block];
    return {result.sent + counted.sent.value(), result.received + counted.received.value(), counted.read.value()};
  }

 private:
  static constexpr std::size_t peers_per_block = 64;
  using block = std::array<peer_counts, peers_per_block>;

  const call_counts& of(call_kind kind) const noexcept { return kinds_[static_cast<std::size_t>(kind)]; }

  /// Null if there is no memory: then bytes are missing from the counts, but the call is not affected.
  peer_counts* with(int peer) noexcept {
    const auto place = static_cast<std::size_t>(peer);
    std::atomic<block*>& holder = blocks_[place / peers_per_block];
    block* its = holder.load(std::memory_order_relaxed);
    if (its == nullptr) [[unlikely]] {
      its = new (std::nothrow) block;
      holder.store(its, std::memory_order_release);
    }
    return its != nullptr ? &(*its)[place % peers_per_block] : nullptr;
  }

  // Written by each call of the direct path: one cache line, with the counts of the first kind.
  alignas(platform::cache_line) published_count pushed_;
  published_count arrived_;
  std::array<call_counts, call_kinds> kinds_;
  published_count exposed_;
  std::atomic<bool> has_ended_{false};
  const platform::tick_mark begin_ = platform::tick_mark::now();
  const std::shared_ptr<const std::vector<int>> members_;
  const int rank_;
  const int ranks_;
  /// By 64 peers. The first message to or from a peer beyond the first 64 allocates the counts of its block.
  const std::unique_ptr<std::atomic<block*>[]> blocks_;
};

/// When a call began, and where its time is added. Calls that end without waiting on a direct path are not timed.
class timed_call {
 public:
  timed_call() = default;
  /// @param blocks whether the caller waits for the call from now on
  timed_call(communication_counts& counts, call_kind kind, bool blocks,
             std::uint64_t begun = platform::ticks()) noexcept
      : counts_(&counts), kind_(kind), blocks_(blocks), begun_(begun) {}

  std::uint64_t begun() const noexcept { return begun_; }

  void ends(std::uint64_t now) const noexcept {
    if (counts_ == nullptr || now < begun_) return;
    counts_->of(kind_).ticks.add(now - begun_);
    if (blocks_) counts_->note_exposed(now - begun_);
  }

 private:
  communication_counts* counts_ = nullptr;
  call_kind kind_ = {};
  bool blocks_ = false;
  std::uint64_t begun_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
