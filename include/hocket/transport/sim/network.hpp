// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The machine that a simulated world runs on: ranks with network ports and processors, messages, one clock.
///
/// The engine itself runs; the network only decides when. Each lane of each operation has its own time. A waiting lane
/// sleeps; when what it waits for has arrived, the operation is polled with that lane awake. So no poll is without
/// progress, whatever the number of ranks.
///
/// Times are as defined in plan/cost_model.hpp, and events are served in the order of plan/trace.hpp: one operation
/// that all ranks start, in rank order, takes the time that `plan::price` returns.
///
/// Not thread-safe: one thread runs a world.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/detail/event_queue.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/operation_event.hpp>
#include <hocket/transport/sim/conditions.hpp>
#include <hocket/transport/sim/endpoint.hpp>
#include <hocket/transport/sim/lanes.hpp>
#include <hocket/transport/sim/message_queues.hpp>
#include <hocket/transport/sim/report.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace sim {

class network {
 public:
  network(int ranks, const conditions& how) : how_(how), rank_resources_(static_cast<std::size_t>(ranks)) {}
  network(const network&) = delete;
  network& operator=(const network&) = delete;

  int size() const noexcept { return static_cast<int>(rank_resources_.size()); }
  const conditions& how() const noexcept { return how_; }
  /// Returns when the last operation so far completed, on any rank or on one rank of the world.
  double now() const noexcept { return latest_; }
  double time_of(int rank) const noexcept { return rank_resources_[static_cast<std::size_t>(rank)].clock; }
  std::uint64_t messages() const noexcept { return messages_; }
  std::uint64_t bytes() const noexcept { return bytes_; }

  /// Lets `rank` be busy for a time: its next operation begins later.
  void spend(int rank, double seconds) noexcept {
    rank_resources& here = rank_resources_[static_cast<std::size_t>(rank)];
    here.clock += seconds;
    latest_ = std::max(latest_, here.clock);
  }

  void join(endpoint& at, std::uint32_t context, const std::shared_ptr<const std::vector<int>>& ranks) {
    groups_.join(at, context, ranks);
  }
  void part(endpoint& at) {
    at.of->members[static_cast<std::size_t>(at.rank)] = nullptr;
    std::erase_if(calls_, [&](const event_at& each) { return each.where == &at; });
    in_use_.remove(at);
  }

  /// Records that an operation failed while the world ran. The first failure is stored until it is taken.
  void note(failure cause) {
    if (!first_failure_) first_failure_ = std::move(cause);
  }
  failure take_failure() { return std::exchange(first_failure_, failure{}); }

  // ── Queries of the lanes of an operation ─────────────────────────────────────────────────────────────────────────

  void call(endpoint& at, std::uint32_t sequence) {
    at.called.insert_or_assign(sequence, rank_resources_[at.world_rank].clock);
    in_use_.add(at);
  }

  /// Begins an operation, at the time of its call or when those before it made room.
  void enter(endpoint& at, std::uint32_t sequence, unsigned lanes) {
    rank_resources& here = rank_resources_[at.world_rank];
    double begin = at.left;
    if (const auto found = at.called.find(sequence); found != at.called.end()) {
      begin = std::max(begin, found->second);
      at.called.erase(found);
    }
    for (unsigned i = 0; i < lanes; ++i) {
      const std::uint32_t index = lanes_.make();
      lane& made = lanes_[index];
      made.at = &at;
      made.sequence = sequence;
      made.number = i;
      made.has_siblings = lanes > 1;
      made.time = made.ready = made.drained = begin;
      at.lanes.push_back(index);
      starting_.push_back(index);
    }
    alive_ += lanes;
    ++here.operations;
  }

  /// Returns whether this lane does `what` now; if so, accounts for its time.
  bool may_act(endpoint& at, std::uint32_t sequence, unsigned number, const plan::action& what, std::size_t bytes) {
    if (running_lane_ == no_index) return false;
    lane& self = lanes_[running_lane_];
    if (self.at != &at || self.sequence != sequence || self.number != number) return false;
    visited_ = true;
    const bool acts = begins(self, at, what);
    if (acts) {
      perform(self, at, what, static_cast<double>(bytes));
    } else {
      running_lane_ = no_index;
    }
    return acts;
  }

  /// Returns the time of the lane that may act, or else of the rank.
  double now_of(const endpoint& at) {
    const bool acts = running_lane_ != no_index && lanes_[running_lane_].at == &at;
    return acts ? lanes_[running_lane_].time : rank_resources_[at.world_rank].clock;
  }

  /// Delays the next action of the lane that may act.
  void hold_up(double seconds) {
    if (running_lane_ != no_index) lanes_[running_lane_].time += seconds;
  }

  /// Returns whether all that this lane sent has been received. Called after its last action.
  bool may_end(const endpoint& at, std::uint32_t sequence, unsigned number) {
    const std::uint32_t index = lanes_.find(at, sequence, number);
    lane& self = lanes_[index];
    if (index == running_lane_) {
      visited_ = true;
      running_lane_ = no_index;
    }
    self.ending = true;
    if (self.undrained != 0) return false;
    if (!self.over) --alive_;
    self.over = true;
    return true;
  }

  /// Ends an operation that has completed or is abandoned.
  void leave(endpoint& at, std::uint32_t sequence) {
    at.called.erase(sequence);
    rank_resources& here = rank_resources_[at.world_rank];
    bool found = false;
    std::erase_if(at.lanes, [&](std::uint32_t index) {
      if (lanes_[index].sequence != sequence) return false;
      found = true;
      at.left = std::max({at.left, lanes_[index].time, lanes_[index].drained});
      here.clock = std::max(here.clock, at.left);
      lanes_[index].over ? lanes_.release(index) : abandon(index);
      return true;
    });
    if (!found) return;
    latest_ = std::max(latest_, here.clock);
    --here.operations;
  }

  // ── Messages of plans ────────────────────────────────────────────────────────────────────────────────────────────

  /// Returns the message that the lane that may act receives.
  const taken_message& taken() const noexcept { return taken_; }

  /// Sends a message of the lane that may act.
  void send(const endpoint& at, int peer, transport::message_id id, const void* data, std::size_t bytes) {
    lane& self = lanes_[running_lane_];
    const std::uint64_t key = transport::message_key(id.sequence, id.channel, at.rank);
    ++self.undrained;
    post({key, data, bytes, at.of, peer, running_lane_, self.sent++, id.signature}, at, self.time);
  }

  // ── Messages outside of plans ────────────────────────────────────────────────────────────────────────────────────

  std::shared_ptr<point_to_point_message> mail(endpoint& at, int peer, transport::message_id id, const void* data,
                                               std::size_t bytes) {
    const auto* const begin = static_cast<const std::byte*>(data);
    auto sent = std::make_shared<point_to_point_message>(
        point_to_point_message{std::vector<std::byte>(begin, begin + bytes), peer});
    const std::uint64_t key = transport::message_key(id.sequence, id.channel, at.rank);
    const std::uint32_t index = post({key, nullptr, bytes, at.of, peer, no_index, at.point_to_point_sent++}, at,
                                     after_overhead(rank_resources_[at.world_rank], plan::action_kind::send, 0));
    point_to_point_[index] = sent;
    in_use_.add(at);
    return sent;
  }

  /// Receives the first arrived message from `peer` with this channel and tag, if any.
  std::shared_ptr<point_to_point_message> fetch(endpoint& at, int peer, transport::message_id id) {
    const found_message found = queued_.find(at, transport::message_key(id.sequence, id.channel, peer));
    note_wait(at, found.index == no_index ? peer : -1);
    if (found.index == no_index) return nullptr;
    rank_resources& here = rank_resources_[at.world_rank];
    const auto entry = point_to_point_.find(found.index);
    const std::shared_ptr<point_to_point_message> content = std::move(entry->second);
    content->received = true;
    content->received_at = after_overhead(here, plan::action_kind::receive, queued_[found.index].arrival);
    here.clock = std::max(here.clock, content->received_at);
    latest_ = std::max(latest_, here.clock);
    point_to_point_.erase(entry);
    endpoint* const sender = at.of->members[static_cast<std::size_t>(peer)];
    if (sender != nullptr) calls_.push_back({sender, transport::operation_event::receipt(id, at.rank)});
    queued_.remove(at, found);
    return content;
  }

  /// Records the peer of a message outside plans that is awaited here; -1: none.
  void note_wait(endpoint& at, int peer) {
    at.awaited_peer = peer;
    if (peer >= 0) in_use_.add(at);
  }

  /// Advances the clock of a sender that learns that its message was received.
  void note_received(const endpoint& at, const point_to_point_message& sent) noexcept {
    double& clock = rank_resources_[at.world_rank].clock;
    clock = std::max(clock, sent.received_at);
    latest_ = std::max(latest_, clock);
  }

  // ── Running ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Runs until nothing can make progress, or something may that only the blocking call on `caller` can poll. Returns
  /// true if anything happened.
  bool run(const endpoint* caller = nullptr) {
    bool moved = false;
    running_lane_ = no_index;
    for (;; moved = true) {
      if (!calls_.empty()) {
        const event_at next = calls_.back();
        calls_.pop_back();
        if (next.where->poll != nullptr) next.where->poll(next.where->owner, next.what);
        if (next.where == caller) return true;
        continue;
      }
      std::uint32_t next = no_index;
      if (!ready_.empty()) {
        next = ready_.back();
        ready_.pop_back();
      } else if (next_start_ != starting_.size()) {
        next = starting_[next_start_++];
      } else if (!event_queue_.empty()) {
        const auto [time, subject] = event_queue_.pop();
        now_ = time;
        if ((subject & message_bit) != 0) {
          arrive(subject & ~message_bit);
          continue;
        }
        next = subject;
      } else {
        starting_.clear();
        next_start_ = 0;
        return moved;
      }
      if (resume(next, caller)) return true;
    }
  }

  /// Returns which ranks wait for what when nothing can make progress; no failure if none waits.
  failure stuck() { return report_waiting(lanes_, alive_, in_use_); }

  /// Polls all operations, so that those that still wait for `send` and `recv` record their peer before `stuck`.
  void ask_all() {
    in_use_.for_each([&](endpoint& at) {
      const group& of = *at.of;
      const auto rank = static_cast<std::size_t>(at.rank);
      at.awaited_peer = -1;
      const bool is_any_incomplete = at.poll != nullptr && at.poll(at.owner, transport::operation_event{});
      if (of.members[rank] == &at && !is_any_incomplete && at.awaited_peer < 0) in_use_.remove(at);
    });
  }

 private:
  static constexpr std::uint32_t message_bit = std::uint32_t{1} << 31;

  struct event_at {
    endpoint* where = nullptr;
    transport::operation_event what;
  };

  // ── Lanes ────────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Abandons a lane: no rank may read what it sent any more.
  void abandon(std::uint32_t index) {
    lanes_.abandon(index);
    if (lanes_[index].undrained != 0) queued_.disown(index);
    --alive_;
  }

  /// Polls the operation of a lane with that lane awake. Returns true if the blocking call on `caller` must do so.
  bool resume(std::uint32_t index, const endpoint* caller) {
    endpoint* const at = lanes_[index].at;
    if (at == nullptr) return false;
    running_lane_ = index;
    visited_ = false;
    if (at->poll != nullptr) at->poll(at->owner, transport::operation_event::step(lanes_[index].sequence));
    if (!visited_ && at == caller) return true;
    running_lane_ = no_index;
    return false;
  }

  void wake(std::uint32_t index) { ready_.push_back(index); }

  // The three steps that follow are those of plan::detail::clock.

  /// Returns whether this lane's next action can begin now. Otherwise the lane will be woken.
  bool begins(lane& self, endpoint& at, const plan::action& what) {
    const bool takes_turns = self.has_siblings || rank_resources_[at.world_rank].operations > 1;
    if (std::exchange(self.turn_over, false)) {
      event_queue_.add(self.time, running_lane_);
      return false;
    }
    self.ready = std::max(self.ready, self.time);
    self.awaited = no_key;
    self.awaited_peer = what.peer;
    if (what.join) {
      self.joining = self.undrained != 0;
      if (self.joining) return false;
      self.ready = std::max(self.ready, self.drained);
    }
    if (receives(what)) {
      const std::uint64_t key = transport::message_key(self.sequence, what.channel, what.peer);
      found_ = queued_.find(at, key);
      if (found_.index == no_index) {
        self.awaited = key;
        return false;
      }
      self.ready = std::max(self.ready, queued_[found_.index].arrival);
    }
    if (!takes_turns) return true;
    self.turn_over = true;
    if (self.ready <= now_) return true;
    self.turn_over = false;
    event_queue_.add(self.ready, running_lane_);
    return false;
  }

  void perform(lane& self, endpoint& at, const plan::action& what, double bytes) {
    rank_resources& here = rank_resources_[at.world_rank];
    const double work = how_.model.processor(what, bytes, static_cast<int>(at.of->members.size()));
    const double begin = work > 0 ? std::max(self.ready, here.processor) : self.ready;
    const double end = begin + work;
    if (work > 0) here.processor = end;
    self.time = self.ready = end;
    if (!receives(what)) return;
    const queued_message& message = queued_[found_.index];
    taken_ = {message.data, message.bytes, message.signature};
    drain(message.sender, end);
    queued_.remove(at, found_);
  }

  static bool receives(const plan::action& what) noexcept {
    return what.kind == plan::action_kind::receive || what.kind == plan::action_kind::receive_reduce;
  }

  void drain(std::uint32_t sender, double time) {
    lane& self = lanes_[sender];
    self.drained = std::max(self.drained, time);
    if (--self.undrained == 0 && (self.joining || self.ending)) wake(sender);
  }

  // ── Messages in flight ───────────────────────────────────────────────────────────────────────────────────────────

  /// Queues a message for the sender's network port, from `time` on.
  std::uint32_t post(const queued_message& content, const endpoint& from, double time) {
    rank_resources& here = rank_resources_[from.world_rank];
    const double start = std::max(time, here.out);
    here.out = start + how_.model.port(static_cast<double>(content.bytes)) + delay_of(content) * port_share();
    ++messages_;
    bytes_ += content.bytes;
    const std::uint32_t index = queued_.make(content);
    event_queue_.add(start, index | message_bit);
    return index;
  }

  /// Continues a message that got the sender's network port: now it needs the receiver's.
  void arrive(std::uint32_t index) {
    queued_message& message = queued_[index];
    endpoint* const to = message.of->members[static_cast<std::size_t>(message.to)];
    if (to == nullptr) return;  // no rank will ever receive it
    double& port = rank_resources_[to->world_rank].in;
    const double begin = std::max(now_, port);
    const double delay = delay_of(message);
    message.arrival = begin + how_.model.message(static_cast<double>(message.bytes)) + delay;
    port = begin + how_.model.port(static_cast<double>(message.bytes)) + delay * port_share();
    queued_.deliver(*to, index);
    if (message.sender == no_index) {
      calls_.push_back({to, {transport::operation_event::kind::arrival, message.key}});
      return;
    }
    for (const std::uint32_t reader : to->lanes) {
      if (lanes_[reader].awaited != message.key) continue;
      lanes_[reader].awaited = no_key;
      wake(reader);
    }
  }

  /// Returns what jitter adds to the latency of a message.
  double delay_of(const queued_message& message) const noexcept {
    if (how_.jitter == 0) return 0;
    const auto receiver = static_cast<std::uint64_t>(message.to) ^ (std::uint64_t{message.of->context} << 24);
    return how_.jitter * detail::draw(how_.seed, message.key, receiver, message.count) * how_.model.latency;
  }
  double port_share() const noexcept { return 1 - how_.model.latency_overlap; }

  double after_overhead(rank_resources& here, plan::action_kind what, double ready) const noexcept {
    const double work = how_.model.processor({.kind = what}, 0, size());
    ready = std::max(ready, here.clock);
    if (work <= 0) return ready;
    here.processor = std::max(ready, here.processor) + work;
    return here.processor;
  }

  const conditions how_;
  std::vector<rank_resources> rank_resources_;
  group_table groups_;
  endpoints_in_use in_use_;
  lane_table lanes_;
  message_queues queued_;
  std::unordered_map<std::uint32_t, std::shared_ptr<point_to_point_message>> point_to_point_;  ///< by message
  plan::detail::event_queue event_queue_;  ///< lanes, and messages that get their sender's port
  std::vector<std::uint32_t> ready_;       ///< lanes that can continue now
  std::vector<std::uint32_t> starting_;    ///< lanes that have not acted yet
  std::size_t next_start_ = 0;
  std::vector<event_at> calls_;  ///< of point-to-point messages; their operations are to be polled
  double now_ = 0;
  double latest_ = 0;
  std::uint32_t running_lane_ = no_index;  ///< the lane that may act
  bool visited_ = false;                   ///< that lane has been polled
  found_message found_;
  taken_message taken_;
  failure first_failure_;
  std::uint64_t alive_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace sim
HOCKET_END_NAMESPACE
