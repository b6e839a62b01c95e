// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The transport whose ranks are threads of one process. A message is a pointer into the sender's memory, so that the
/// receiver copies or reduces directly from there; every rank can reach every buffer.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/local/segment.hpp>
#include <hocket/transport/local/world.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace local {

class domain;

/// One rank's end of a communicator. See transport/concept.hpp for the meaning of the members.
class endpoint_group {
 public:
  static constexpr bool shares_address_space = true;
  static constexpr bool receives_in_place = true;

  struct sending {
    const channel* through = nullptr;
    std::uint64_t number = 0;  ///< drained once this many were consumed; 0: immediately
  };
  struct receiving {
    channel* through = nullptr;
    std::uint64_t number = 0;
    std::vector<std::byte> kept;  ///< a message that arrived before its receive was posted
  };

  /// `segments` are those of all members; the endpoint group releases its share of each.
  endpoint_group(std::shared_ptr<domain> owner, const transport::open_parameters& how, std::vector<segment*> segments,
                 int ranks_per_core)
      : owner_(std::move(owner)), members_(how.members), rank_(how.rank), ranks_per_core_(ranks_per_core),
        segments_(std::move(segments)), counters_(how.members->size() * segment::channels_per_peer) {}
  endpoint_group(const endpoint_group&) = delete;
  endpoint_group& operator=(const endpoint_group&) = delete;
  ~endpoint_group();

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return static_cast<int>(segments_.size()); }
  int ranks_per_core() const noexcept { return ranks_per_core_; }

  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                failure&) noexcept {
    channel& through = at(peer)->channel_from(rank_, segment::channel_index(id));
    counter& count = counter_of(peer, id);
    if (count.sent - count.seen_consumed >= transport::channel_depth) {
      count.seen_consumed = through.consumed.load(std::memory_order_acquire);
      if (count.sent - count.seen_consumed >= transport::channel_depth) return false;
    }
    cell& place = cell_of(through, count.sent + 1);
    const bool inlined = bytes <= cell::inline_capacity;
    if (inlined && bytes > 0) std::memcpy(place.payload, data, bytes);
    place.data = inlined ? nullptr : data;
    place.bytes = bytes;
    place.sequence = id.sequence;
    place.signature = id.signature;
    ++count.sent;
    place.number.store(count.sent, std::memory_order_release);
    state = {&through, inlined ? 0 : count.sent};
    return true;
  }

  static constexpr std::size_t eager_bytes() noexcept { return cell::inline_capacity; }
  bool send_eagerly(int peer, transport::message_id id, const void* data, std::size_t bytes) noexcept {
    sending state;
    failure none;
    return try_send(state, peer, id, data, bytes, none);
  }
  template <class Take>
  transport::eager_receive receive_eagerly(int peer, transport::message_id id, std::size_t bytes, Take take) {
    using transport::eager_receive;
    if (!early_.empty() && find_early(peer, id) != early_.end()) return eager_receive::needs_general_receive;
    channel& through = at(rank_)->channel_from(peer, segment::channel_index(id));
    counter& count = counter_of(peer, id);
    const cell& place = cell_of(through, count.received + 1);
    if (place.number.load(std::memory_order_acquire) != count.received + 1) return eager_receive::not_arrived;
    if (place.sequence != id.sequence || place.bytes != bytes || place.signature != id.signature)
      return eager_receive::needs_general_receive;
    take(place.payload);
    through.consumed.store(++count.received, std::memory_order_release);
    return eager_receive::taken;
  }

  bool drained(sending& state) const noexcept {
    return state.number == 0 || state.through->consumed.load(std::memory_order_acquire) >= state.number;
  }

  const void* try_receive(receiving& state, int peer, transport::message_id id, void*, std::size_t bytes,
                          failure& fail) {
    if (id.point_to_point()) {
      if (const void* const early = take_early(state, peer, id, bytes, fail); early != nullptr || fail) return early;
      keep_early(peer, id);
    }
    channel& through = at(rank_)->channel_from(peer, segment::channel_index(id));
    const std::uint64_t next = counter_of(peer, id).received + 1;
    cell& place = cell_of(through, next);
    if (place.number.load(std::memory_order_acquire) != next) return nullptr;
    // A message with another tag that arrived after `keep_early` is copied by the next call.
    if (id.point_to_point() && place.sequence != id.sequence) return nullptr;
    if (place.sequence != id.sequence || place.bytes != bytes || !transport::fits(place.signature, id)) [[unlikely]] {
      fail = unexpected(place.sequence, place.bytes, peer, id, bytes, transport::fits(place.signature, id));
      return nullptr;
    }
    counter_of(peer, id).received = next;
    state.through = &through;
    state.number = next;
    return place.data == nullptr ? place.payload : place.data;
  }

  void release(receiving& state) noexcept {
    if (state.through != nullptr) state.through->consumed.store(state.number, std::memory_order_release);
  }

  static bool progress() noexcept { return false; }
  bool broken(failure& fail) const;
  bool gone(int peer) const;

  static void discard() noexcept {}

  void post(int peer, std::span<const std::byte> payload) {
    at(peer)->mail().put({rank_, std::vector<std::byte>(payload.begin(), payload.end())});
  }
  static bool posted() noexcept { return true; }
  bool has_control_message() const noexcept { return at(rank_)->mail().has_messages(); }
  bool fetch(transport::control_message& received) { return at(rank_)->mail().pop(received); }

  std::byte* window_of(int peer) const noexcept { return at(peer)->window(); }
  static bool windows_reachable() noexcept { return true; }
  static std::uint64_t publish(const void* data, std::size_t) noexcept {
    return reinterpret_cast<std::uintptr_t>(data);
  }
  static const std::byte* resolve(int, std::uint64_t handle) noexcept {
    return reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(handle));
  }

 private:
  /// Counters of one channel between this rank and one peer, in both directions.
  struct counter {
    std::uint64_t sent = 0;
    std::uint64_t seen_consumed = 0;
    std::uint64_t received = 0;
  };

  /// A copy of a point-to-point message that arrived while a receive waited for another tag.
  struct early_message {
    int peer = 0;
    std::uint32_t channel = 0;
    std::uint32_t tag = 0;
    std::uint32_t signature = 0;
    std::vector<std::byte> bytes;
  };

  static cell& cell_of(channel& through, std::uint64_t number) noexcept {
    return through.cells[(number - 1) % transport::channel_depth];
  }

  const void* take_early(receiving& state, int peer, transport::message_id id, std::size_t bytes, failure& fail) {
    const auto found = find_early(peer, id);
    if (found == early_.end()) return nullptr;
    if (found->bytes.size() != bytes || !transport::fits(found->signature, id)) {
      fail = unexpected(found->tag, found->bytes.size(), peer, id, bytes, transport::fits(found->signature, id));
      return nullptr;
    }
    state.through = nullptr;
    state.kept = std::move(found->bytes);
    state.kept.reserve(1);  // so that an empty message has an address too
    early_.erase(found);
    return state.kept.data();
  }

  std::vector<early_message>::iterator find_early(int peer, transport::message_id id) noexcept {
    return std::find_if(early_.begin(), early_.end(), [&](const early_message& each) {
      return each.peer == peer && each.channel == id.channel && each.tag == id.sequence;
    });
  }

  /// Copies messages with other tags out of the channel, so that those behind them become visible.
  void keep_early(int peer, transport::message_id id) {
    channel& through = at(rank_)->channel_from(peer, segment::channel_index(id));
    for (;;) {
      const std::uint64_t next = counter_of(peer, id).received + 1;
      const cell& place = cell_of(through, next);
      if (place.number.load(std::memory_order_acquire) != next || place.sequence == id.sequence) return;
      const auto* const data = place.data == nullptr ? place.payload : static_cast<const std::byte*>(place.data);
      early_.push_back(
          {peer, id.channel, place.sequence, place.signature, std::vector<std::byte>(data, data + place.bytes)});
      counter_of(peer, id).received = next;
      through.consumed.store(next, std::memory_order_release);
    }
  }

  segment* at(int peer) const noexcept { return segments_[static_cast<std::size_t>(peer)]; }

  counter& counter_of(int peer, transport::message_id id) noexcept {
    return counters_[static_cast<std::size_t>(peer) * segment::channels_per_peer + segment::channel_index(id)];
  }

  static failure unexpected(std::uint32_t their_sequence, std::size_t their_bytes, int peer, transport::message_id id,
                            std::size_t bytes, bool same_call) {
    if (their_sequence != id.sequence) {
      return make_failure(
          errc::mismatch,
          hocket::detail::concat({"the peer is at operation #", their_sequence, ", whose steps differ from ours"}),
          {.peer = peer});
    }
    if (their_bytes == bytes) return transport::type_mismatch(peer, id);
    return transport::wrong_length(std::to_string(their_bytes), their_bytes > bytes, peer, id, bytes, same_call);
  }

  const std::shared_ptr<domain> owner_;
  const std::shared_ptr<const std::vector<int>> members_;
  const int rank_;
  const int ranks_per_core_;
  std::vector<segment*> segments_;
  std::vector<counter> counters_;
  std::vector<early_message> early_;
};

/// One thread's membership in a `world`.
class domain {
 public:
  using endpoints_type = endpoint_group;
  static constexpr const char* name = "local";

  domain(std::shared_ptr<world> place, int rank) : world_(std::move(place)), rank_(rank) {}

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return world_->size(); }
  const world& place() const noexcept { return *world_; }
  /// Releases a segment that no rank needs any more.
  void drop(const segment* gone) noexcept { world_->drop(gone); }
  transport::contexts& contexts() noexcept { return contexts_; }

  /// Rough figures of one machine; only their proportions matter for the choice of an algorithm.
  static constexpr transport::link_costs costs() noexcept { return {1.5e-7, 6e-11, 8e-8, 5e-11, 5e-11}; }

  /// Opens an endpoint group. The world owns the segments: if this rank fails in here, others may already refer to its
  /// segment; if another rank fails, the share count of its segment never reaches 0.
  static std::unique_ptr<endpoint_group> open(const std::shared_ptr<domain>& self,
                                              const transport::open_parameters& how) {
    auto own = std::make_shared<segment>(static_cast<int>(how.members->size()), how.window_bytes);
    self->world_->keep(own);
    return std::make_unique<endpoint_group>(self, how, exchanged(how, own.get()), self->world_->ranks_per_core());
  }
  /// Returns `self`: a thread that ended leaves the domain usable.
  static std::shared_ptr<domain> renewed(const std::shared_ptr<domain>& self, transport::open_parameters&) {
    return self;
  }

 private:
  static std::vector<segment*> exchanged(const transport::open_parameters& how, segment* own) {
    std::vector<segment*> all;
    for (const auto& theirs : how.exchange(std::as_bytes(std::span(&own, 1)))) {
      segment* address = nullptr;
      std::memcpy(&address, theirs.data(), sizeof address);
      all.push_back(address);
    }
    return all;
  }

  const std::shared_ptr<world> world_;
  const int rank_;
  transport::contexts contexts_;
};

inline endpoint_group::~endpoint_group() {
  at(rank_)->leave();
  for (segment* each : segments_) {
    if (each->release()) owner_->drop(each);
  }
}

/// Reports a member of this communicator as lost if its thread ended with an exception.
inline bool endpoint_group::broken(failure& fail) const {
  if (!owner_->place().any_lost()) return false;
  for (int peer = 0; peer < size(); ++peer) {
    if (!owner_->place().lost((*members_)[static_cast<std::size_t>(peer)])) continue;
    fail = make_failure(errc::peer_lost, "its thread ended with an exception", {.peer = peer});
    return true;
  }
  return false;
}

inline bool endpoint_group::gone(int peer) const {
  return at(peer)->left() || owner_->place().lost((*members_)[static_cast<std::size_t>(peer)]);
}

static_assert(transport::endpoint_group<endpoint_group>);
static_assert(transport::domain<domain>);

}  // namespace local
HOCKET_END_NAMESPACE
