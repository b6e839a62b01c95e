// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The transport between the ranks of a simulated world: copies nothing, a receiver gets the sender's own memory.
///
/// There are no threads and no waits: the caller that runs the world advances all ranks, in virtual time. The endpoint
/// group passes the next actions of the engine's lanes to the network, which sets the time: `transport::paces_steps`.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/operation_event.hpp>
#include <hocket/transport/sim/conditions.hpp>
#include <hocket/transport/sim/network.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

class domain;

/// One rank's end of one communicator.
class endpoint_group {
 public:
  static constexpr bool virtual_time = true;
  static constexpr bool shares_address_space = false;  // one thread: no rank reads while another frees
  static constexpr bool receives_in_place = true;

  /// Messages of plans need no handle: `may_end` ensures that a lane ends only when all that it sent has been received.
  struct sending {
    std::shared_ptr<const point_to_point_message> mailed;
  };
  struct receiving {
    std::shared_ptr<const point_to_point_message> fetched;
  };

  endpoint_group(std::shared_ptr<network> through, const transport::open_parameters& how)
      : network_(std::move(through)) {
    here_.rank = how.rank;
    here_.world_rank = static_cast<std::size_t>((*how.members)[static_cast<std::size_t>(how.rank)]);
    network_->join(here_, how.context, how.members);
  }
  endpoint_group(const endpoint_group&) = delete;
  endpoint_group& operator=(const endpoint_group&) = delete;
  ~endpoint_group() { network_->part(here_); }

  int rank() const noexcept { return here_.rank; }
  int size() const noexcept { return static_cast<int>(here_.of->members.size()); }
  static constexpr int ranks_per_core() noexcept { return 1; }

  /// Sets the callback that polls active operations of these endpoints when the world runs. Without it, only blocking
  /// calls make progress here.
  void attach(void* owner, transport::poll_function poll) noexcept {
    here_.owner = owner;
    here_.poll = poll;
  }

  /// Records that an operation of these endpoints failed while the world ran.
  void note(failure cause) { network_->note(std::move(cause)); }

  // ── The pace of the engine ───────────────────────────────────────────────────────────────────────────────────────

  void call(std::uint32_t sequence) { network_->call(here_, sequence); }
  void enter(std::uint32_t sequence, unsigned lanes) { network_->enter(here_, sequence, lanes); }
  bool may_act(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    return network_->may_act(here_, sequence, lane, what, bytes);
  }
  bool may_end(std::uint32_t sequence, unsigned lane) { return network_->may_end(here_, sequence, lane); }
  void leave(std::uint32_t sequence) { network_->leave(here_, sequence); }
  /// Returns the time, in seconds, of the lane that may act, or else of this rank.
  double now() const { return network_->now_of(here_); }
  /// Delays the action that may be done now.
  void hold_up(double seconds) { network_->hold_up(seconds); }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                failure& fail) {
    if (peer < 0 || peer >= size() || (peer == rank() && !id.point_to_point())) {
      fail = make_failure(errc::invalid_argument, hocket::detail::concat({"the plan sends to rank ", peer,
                                                                          ", which is not another rank of ", size()}));
      return false;
    }
    if (id.point_to_point()) {
      state.mailed = network_->mail(here_, peer, id, data, bytes);
    } else {
      network_->send(here_, peer, id, data == nullptr ? &nothing : data, bytes);
    }
    return true;
  }

  bool drained(sending& state) {
    if (state.mailed == nullptr) return true;
    network_->note_wait(here_, state.mailed->received ? -1 : state.mailed->to);
    if (!state.mailed->received) return false;
    network_->note_received(here_, *state.mailed);
    return true;
  }

  const void* try_receive(receiving& state, int peer, transport::message_id id, void*, std::size_t bytes,
                          failure& fail) {
    if (id.point_to_point()) {
      state.fetched = network_->fetch(here_, peer, id);
      if (state.fetched == nullptr) return nullptr;
      const auto& content = state.fetched->bytes;
      return matches({content.empty() ? &nothing : content.data(), content.size()}, peer, id, bytes, fail);
    }
    return matches(network_->taken(), peer, id, bytes, fail);
  }

  static void release(receiving& state) noexcept { state.fetched.reset(); }

  /// Calls that do not block do not advance the world: `sim::world::run` does.
  static bool progress() noexcept { return false; }

  /// Called by a blocking call: runs the world until that call can continue. Returns true if nothing can make progress.
  bool broken(failure& fail) {
    if (network_->run(&here_)) return false;
    fail = network_->stuck();
    if (!fail) fail = make_failure(errc::timeout, "no operation of this simulated world can make progress");
    fail.reason += "; ranks that share a thread must start their calls with the _async form, and then run the world";
    fail.context.rank = rank();
    fail.context.ranks = size();
    fail.context.peer = -1;
    return true;
  }

  bool gone(int peer) const noexcept { return here_.of->members[static_cast<std::size_t>(peer)] == nullptr; }

  // ── Control messages: delivered immediately, in no virtual time ──────────────────────────────────────────────────

  static void discard() noexcept {}

  void post(int peer, std::span<const std::byte> payload) {
    endpoint* const to = here_.of->members[static_cast<std::size_t>(peer)];
    if (to != nullptr) to->mail.push_back({rank(), std::vector<std::byte>(payload.begin(), payload.end())});
  }
  static constexpr bool posted() noexcept { return true; }
  bool has_control_message() const noexcept { return !here_.mail.empty(); }
  bool fetch(transport::control_message& received) {
    if (here_.mail.empty()) return false;
    received = std::move(here_.mail.front());
    here_.mail.pop_front();
    return true;
  }

  // ── Peers' memory can't be reached ───────────────────────────────────────────────────────────────────────────────

  static std::byte* window_of(int) noexcept { return nullptr; }
  static constexpr bool windows_reachable() noexcept { return false; }
  static constexpr std::uint64_t publish(const void*, std::size_t) noexcept { return 0; }
  static const std::byte* resolve(int, std::uint64_t) noexcept { return nullptr; }

 private:
  static constexpr std::byte nothing{};  ///< address of messages without data

  static const void* matches(const taken_message& message, int peer, transport::message_id id, std::size_t bytes,
                             failure& fail) {
    if (message.data == nullptr) {
      fail = make_failure(errc::aborted, "the peer has abandoned this operation", {.peer = peer});
      return nullptr;
    }
    if (message.bytes != bytes) {
      fail = transport::wrong_length(std::to_string(message.bytes), message.bytes > bytes, peer, id, bytes,
                                     transport::fits(message.signature, id));
      return nullptr;
    }
    if (!transport::fits(message.signature, id)) {
      fail = transport::type_mismatch(peer, id);
      return nullptr;
    }
    return message.data;
  }

  const std::shared_ptr<network> network_;
  endpoint here_;
};

/// One rank of a simulated world.
class domain {
 public:
  using endpoints_type = endpoint_group;
  static constexpr const char* name = "sim";

  domain(std::shared_ptr<network> place, int rank) : network_(std::move(place)), rank_(rank) {}

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return network_->size(); }
  transport::contexts& contexts() noexcept { return contexts_; }
  transport::link_costs costs() const noexcept { return costs_of(network_->how().model); }

  static std::unique_ptr<endpoint_group> open(const std::shared_ptr<domain>& self,
                                              const transport::open_parameters& how) {
    return std::make_unique<endpoint_group>(self->network_, how);
  }
  static std::shared_ptr<domain> renewed(const std::shared_ptr<domain>& self, transport::open_parameters&) {
    return self;
  }

 private:
  const std::shared_ptr<network> network_;
  const int rank_;
  transport::contexts contexts_;
};

static_assert(transport::endpoint_group<endpoint_group>);
static_assert(transport::domain<domain>);

}  // namespace sim
HOCKET_END_NAMESPACE
