// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// `plan::trace` computes the times of all actions and messages of a plan without running it. It simulates all ranks
/// with a virtual clock and a cost model, and reports each action and each message with its times.
///
/// The simulation is deterministic: events at equal times are served in the order in which they were scheduled. It
/// takes about a tenth of a microsecond per message, and memory for the lanes and the messages in flight, not for the
/// whole plan.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/cost_model.hpp>
#include <hocket/plan/detail/event_queue.hpp>
#include <hocket/plan/detail/mailbox_table.hpp>
#include <hocket/plan/detail/rank_classes.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/plan/to_string.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// One action with its times, in seconds from the common start of all ranks.
struct timed_action {
  int rank = 0;
  unsigned lane = 0;
  unsigned index = 0;       ///< in its lane
  action what;              ///< the action
  std::uint64_t bytes = 0;  ///< moved or combined, per source
  double reached = 0;       ///< when the lane reached the action
  double begin = 0;         ///< when the action starts, after all waits
  double end = 0;           ///< when the lane continues with its next action
};

/// A message with its sending and its receiving action, or a flag with its `signal` or `push` and its `wait`.
struct timed_transfer {
  int from_rank = 0;        ///< the sender
  unsigned from_lane = 0;   ///< the sender's lane
  unsigned from_index = 0;  ///< the sender's action in that lane
  int to_rank = 0;          ///< the receiver
  unsigned to_lane = 0;     ///< the receiver's lane
  unsigned to_index = 0;    ///< the receiver's action in that lane
  bool flag = false;        ///< true for a flag, false for a message
  std::uint64_t bytes = 0;  ///< of the message
  double start = 0;         ///< when the sender's port begins to send the message, or the flag is set
  double arrival = 0;       ///< when the message or flag arrives
};

namespace detail {

[[noreturn]] inline void raise_bad_plan(const char* plan, int ranks, int rank, unsigned lane, unsigned index,
                                        const action& what, const char* problem) {
  raise(errc::invalid_argument,
        hocket::detail::concat({"plan ", plan, " over ", ranks, " ranks: \"", to_string(what), "\" ", problem}),
        {.rank = rank, .ranks = ranks, .lane = static_cast<int>(lane), .step = static_cast<int>(index)});
}

/// The simulation of `trace`. A lane runs until it waits. Messages of a rank's port (network link) take turns by time.
template <class Plan, class Observer>
class plan_simulator {
 public:
  /// `as` other than `none`: simulates rank 0 for all ranks.
  constexpr plan_simulator(const Plan& plan, int ranks, const layout& where, std::size_t element_bytes,
                           const cost_model& model, Observer& observer, rank_symmetry as = rank_symmetry::none)
      : plan_(plan), ranks_(ranks), classes_(ranks, as), lanes_per_rank_(plan.shape(ranks).lanes), where_(where),
        element_bytes_(element_bytes), model_(model), observer_(observer), rank_resources_(classes_.count()) {
    if (rank_resources_.size() * lanes_per_rank_ >= message_bit) {
      raise(errc::invalid_argument, "plan '" + std::string(plan.name()) + "' over " + std::to_string(ranks) +
                                        " ranks has more lanes than the simulation can number: simulate fewer ranks");
    }
    lanes_.resize(rank_resources_.size() * lanes_per_rank_);
    for (std::size_t i = 0; i < lanes_.size(); ++i) {
      lanes_[i].rank = static_cast<int>(i / lanes_per_rank_);
      lanes_[i].number = static_cast<unsigned>(i % lanes_per_rank_);
      lanes_[i].length = plan_.length(ranks_, lanes_[i].rank, lanes_[i].number);
    }
  }

  constexpr void run() {
    for (std::size_t i = lanes_.size(); i > 0; --i) ready_.push_back(static_cast<std::uint32_t>(i - 1));
    for (;;) {
      if (!ready_.empty()) {
        const std::uint32_t next = ready_.back();
        ready_.pop_back();
        advance(next);
      } else if (!event_queue_.empty()) {
        const auto [time, subject] = event_queue_.pop();
        now_ = time;
        (subject & message_bit) != 0 ? arrive(subject & ~message_bit) : advance(subject);
      } else {
        break;
      }
    }
    check_end();
  }

 private:
  struct lane_state {
    int rank = 0;
    unsigned number = 0;
    std::uint32_t next = 0;
    std::uint32_t length = 0;
    std::uint32_t undrained = 0;  ///< number of sends that have not drained
    std::int32_t awaited = 0;     ///< number of peers whose flags the current `wait` has received
    bool joining = false;         ///< waits until its earlier sends have drained
    double time = 0;              ///< when the lane reached action `next`
    double ready = 0;             ///< earliest start of action `next`, as far as known
    double drained = 0;           ///< when the last send drained
  };

  /// Times at which a rank's outgoing port, incoming port and processor are free again, in seconds.
  struct rank_resources {
    double out = 0;
    double in = 0;
    double processor = 0;
  };

  static constexpr std::uint32_t message_bit = std::uint32_t{1} << 31;  ///< events: lanes, or messages with this bit

  constexpr void wake(std::uint32_t lane) {
    if (lane != no_index) ready_.push_back(lane);
  }

  /// Runs a lane until it waits. With several lanes per rank, each action is an event, so that lanes run in time order.
  constexpr void advance(std::uint32_t number) {
    lane_state& lane = lanes_[number];
    while (lane.next != lane.length) {
      const action what = plan_.at(ranks_, lane.rank, lane.number, lane.next);
      check(lane, what);
      if (!can_begin(number, lane, what)) return;
      if (lanes_per_rank_ > 1 && lane.ready > now_) return event_queue_.add(lane.ready, number);
      perform(number, lane, what);
      if (lanes_per_rank_ > 1 && lane.next != lane.length) return event_queue_.add(lane.time, number);
    }
  }

  /// Returns whether all that `what` waits for has a known time; `lane.ready` is then the earliest start of `what`.
  constexpr bool can_begin(std::uint32_t number, lane_state& lane, const action& what) {
    lane.ready = std::max(lane.ready, lane.time);
    if (what.join) {
      lane.joining = lane.undrained != 0;
      if (lane.joining) return false;
      lane.ready = std::max(lane.ready, lane.drained);
    }
    if (what.kind == action_kind::receive || what.kind == action_kind::receive_reduce) {
      mailbox& box = mailboxes_.box(box_of(what.peer, lane.rank, message_topic(what.channel)));
      if (box.first == no_index) box.reader = number;
      else lane.ready = std::max(lane.ready, mailboxes_.at(box.first).arrival);
      return box.first != no_index;
    }
    return what.kind != action_kind::wait || has_flags(number, lane, what);
  }

  constexpr bool has_flags(std::uint32_t number, lane_state& lane, const action& what) {
    const int first = what.peer == all_peers ? 0 : what.peer;
    const int last = what.peer == all_peers ? ranks_ : what.peer + 1;
    for (; first + lane.awaited < last; ++lane.awaited) {
      const int peer = first + lane.awaited;
      if (peer == lane.rank) continue;
      const std::uint32_t box = box_of(peer, lane.rank, flag_topic(what.tag));
      if (mailboxes_.box(box).first == no_index) {
        mailboxes_.box(box).reader = number;
        return false;
      }
      lane.ready = std::max(lane.ready, receive(lane, box).arrival);
    }
    return true;
  }

  constexpr void perform(std::uint32_t number, lane_state& lane, const action& what) {
    const std::uint64_t bytes = where_.chunks(what.chunk, what.count).size * element_bytes_;
    rank_resources& here = rank_resources_[classes_.index(lane.rank)];
    const double work = model_.processor(what, static_cast<double>(bytes), ranks_);
    const double begin = work > 0 ? std::max(lane.ready, here.processor) : lane.ready;
    const double end = begin + work;
    if (work > 0) here.processor = end;

    if (what.kind == action_kind::receive || what.kind == action_kind::receive_reduce) {
      const queued_message message = receive(lane, box_of(what.peer, lane.rank, message_topic(what.channel)));
      drain(message.sender, end);
    } else if (what.kind == action_kind::send) {
      const double start = std::max(end, here.out);
      here.out = start + model_.port(static_cast<double>(bytes));
      ++lane.undrained;
      const std::uint32_t box = box_of(lane.rank, what.peer, message_topic(what.channel));
      // Not as a braced argument, which nvcc does not compile.
      const queued_message sent{number, lane.next, box, no_index, bytes, start, start};
      event_queue_.add(start, message_bit | mailboxes_.write(sent));
    } else if (what.kind == action_kind::signal || what.kind == action_kind::push) {
      raise_flags(number, lane, what, end);
    }
    observer_.performed(timed_action{lane.rank, lane.number, lane.next, what, bytes, lane.time, begin, end});
    lane.time = lane.ready = end;
    lane.awaited = 0;
    ++lane.next;
  }

  constexpr void raise_flags(std::uint32_t number, const lane_state& lane, const action& what, double end) {
    const int first = what.peer == all_peers ? 0 : what.peer;
    const int last = what.peer == all_peers ? ranks_ : what.peer + 1;
    for (int peer = first; peer < last; ++peer) {
      if (peer == lane.rank) continue;
      const std::uint32_t box = box_of(lane.rank, peer, flag_topic(what.tag));
      wake(mailboxes_.deliver(
          mailboxes_.write(queued_message{number, lane.next, box, no_index, 0, end, end + model_.flag_latency})));
    }
  }

  /// Handles a message that the sender's port begins to send: reserves the receiver's port, and computes the arrival.
  constexpr void arrive(std::uint32_t index) {
    queued_message& message = mailboxes_.at(index);
    double& port = rank_resources_[classes_.index(mailboxes_.box(message.box).to)].in;
    const double begin = std::max(now_, port);
    message.arrival = begin + model_.message(static_cast<double>(message.bytes));
    port = begin + model_.port(static_cast<double>(message.bytes));
    wake(mailboxes_.deliver(index));
  }

  constexpr std::uint32_t box_of(int from, int to, std::uint32_t topic) {
    const route through = classes_.route_of(from, to);
    return mailboxes_.find(through.from, through.to, topic);
  }

  constexpr queued_message receive(const lane_state& lane, std::uint32_t box) {
    const bool flag = is_flag(mailboxes_.box(box).topic);
    const queued_message content = mailboxes_.pop(box);
    const lane_state& sender = lanes_[content.sender];
    observer_.transferred(timed_transfer{sender.rank, sender.number, content.index, lane.rank, lane.number, lane.next,
                                         flag, content.bytes, content.start, content.arrival});
    return content;
  }

  constexpr void drain(std::uint32_t number, double time) {
    lane_state& sender = lanes_[number];
    sender.drained = std::max(sender.drained, time);
    if (--sender.undrained == 0 && sender.joining) wake(number);
  }

  constexpr void check(const lane_state& lane, const action& what) const {
    const bool any_peer =
        what.kind == action_kind::push || what.kind == action_kind::signal || what.kind == action_kind::wait;
    const bool no_peer = what.kind == action_kind::copy || what.kind == action_kind::load_reduce;
    const bool known =
        what.peer >= 0 && what.peer < ranks_ && (what.peer != lane.rank || what.kind == action_kind::load);
    const bool all = any_peer && what.peer == all_peers;
    if (!no_peer && !known && !all) raise_problem(lane, what, "must name another rank as its peer");
    if (what.chunk > where_.chunk_count() || what.count > where_.chunk_count() - what.chunk)
      raise_problem(lane, what, "goes beyond the last chunk of the layout");
  }

  constexpr void check_end() const {
    for (const lane_state& lane : lanes_)
      if (lane.next != lane.length)
        raise_problem(lane, plan_.at(ranks_, lane.rank, lane.number, lane.next),
                      "never completes: its peer has no matching action, or the two wait for each other");
    for (const lane_state& lane : lanes_)
      if (lane.undrained != 0)
        raise_problem(lane, plan_.at(ranks_, lane.rank, lane.number, lane.length - 1),
                      "ends a lane whose sends are not all received: add the missing receive actions");
  }

  constexpr void raise_problem(const lane_state& lane, const action& what, const char* problem) const {
    raise_bad_plan(plan_.name(), ranks_, lane.rank, lane.number, lane.next, what, problem);
  }

  const Plan& plan_;
  int ranks_;
  rank_classes classes_;
  unsigned lanes_per_rank_;
  layout where_;
  std::size_t element_bytes_;
  cost_model model_;
  Observer& observer_;
  std::vector<lane_state> lanes_;
  std::vector<rank_resources> rank_resources_;
  mailbox_table mailboxes_;
  std::vector<std::uint32_t> ready_;  ///< lanes that can continue now
  event_queue event_queue_;
  double now_ = 0;
};

}  // namespace detail

/// Returns the layout under `plan` of a vector of `bytes` bytes, rounded up to a multiple of the number of blocks.
template <algorithm Plan>
constexpr layout layout_of(const Plan& plan, int ranks, std::size_t bytes) {
  const auto blocks = static_cast<std::uint32_t>(plan.collective().blocks(ranks));
  return {bytes / blocks + (bytes % blocks != 0 ? 1 : 0), blocks, plan.shape(ranks).chunks_per_block};
}

namespace detail {

/// Checks the arguments of `trace` and `price` that do not depend on the plan's actions.
constexpr void check_simulation_arguments(const char* plan, int ranks, const cost_model& model) {
  if (ranks < 1 || ranks > most_ranks) {
    raise(errc::invalid_argument, "plan '" + std::string(plan) + "' over " + std::to_string(ranks) +
                                      " ranks: the number of ranks must be from 1 to " + std::to_string(most_ranks));
  }
  if (const char* const why = model.invalid_member(); why != nullptr) {
    raise(errc::invalid_argument, "the cost model is invalid: " + std::string(why));
  }
}

}  // namespace detail

/// Calls `observer.performed(timed_action)` for each action and `observer.transferred(timed_transfer)` for each message
/// and flag, of all ranks. A transfer is reported after the action that sends it and before the action that receives it. Actions of
/// one lane are reported in order; across lanes the order is a possible order of execution, not the order of times.
/// Raises errc::invalid_argument if the plan does not complete or names peers or chunks that do not exist, if `ranks`
/// is less than 1 or more than `most_ranks`, or if the cost model is invalid. Takes the steps of all ranks: `action_count`
/// in plan/proof_size.hpp tells how many these are.
template <algorithm Plan, class Observer>
constexpr void trace(const Plan& plan, int ranks, const layout& where, std::size_t element_bytes,
                     const cost_model& model, Observer&& observer) {
  detail::check_simulation_arguments(plan.name(), ranks, model);
  detail::plan_simulator simulation(plan, ranks, where, element_bytes, model, observer);
  simulation.run();
}

}  // namespace plan
HOCKET_END_NAMESPACE
