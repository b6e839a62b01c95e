// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One rank's actions of a plan with all addresses filled in, in the order in which they are put on a stream. Computed
/// once; enqueueing it, or replaying it in a graph, needs no other data.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/stream/binding.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/merged_lanes.hpp>
#include <hocket/plan/signal_reuse.hpp>
#include <hocket/transport/cuda_ipc/word_layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

enum class stream_action_kind : std::uint8_t {
  set,      ///< sets the word at `to` to 1
  await,    ///< waits until the word at `to` is 1, and resets it to 0
  copy,     ///< `bytes` bytes
  combine,  ///< `bytes` bytes of each source
  fuse,     ///< like `combine`, into as many destinations, which follow the sources
  nothing   ///< placeholder of an action that moves no bytes
};

struct stream_step {
  static constexpr unsigned after_plan = ~0U;

  stream_action_kind what = stream_action_kind::nothing;
  bool last = true;       ///< last step of its action
  unsigned lane = 0;      ///< lane of the action in the plan
  unsigned position = 0;  ///< in the lane; `after_plan` for an acknowledgement
  int peer = -1;
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::size_t bytes = 0;
  std::size_t first_source = 0;
  std::size_t sources = 0;
};

struct stream_program {
  std::vector<stream_step> steps;
  std::vector<const void*> sources;  ///< of combinations, in operand order
  std::vector<void*> destinations;   ///< of a fused combination, in operand order
};

/// Addresses of the buffers of all ranks, in this rank's address space.
struct stream_buffers {
  std::vector<std::uint64_t> in;
  std::vector<std::uint64_t> out;
  std::vector<std::uint64_t> scratch;  ///< those of peers only if they send from it
};

/// Compiles one rank's actions. The receiver reads a message from the sender's memory: the sender signals that it is
/// ready, and actions that need the message drained wait for the receipt.
template <class Group>
class stream_compiler {
 public:
  stream_compiler(const Group& group, const stream_binding& bound, const stream_buffers& at,
                  const plan::signal_reuse& reuse, const plan::merged_lanes& order)
      : group_(group), bound_(bound), at_(at), reuse_(reuse), order_(order), ranks_(group.size()), rank_(group.rank()),
        layout_(layout_of(bound, ranks_)), drained_(order.messages.size()) {}

  stream_program operator()() {
    if (bound_.fused) {
      position_ = stream_step::after_plan;
      fuse();
      return std::move(result_);
    }
    for (const plan::merged_step& each : order_.steps[static_cast<std::size_t>(rank_)]) {
      lane_ = each.lane;
      position_ = each.position;
      add(each);
    }
    position_ = stream_step::after_plan;
    await_receipts([](const plan::merged_message&) { return true; });
    acknowledge();
    return std::move(result_);
  }

 private:
  using bank = cuda_ipc::word_bank;

  void add(const plan::merged_step& step) {
    const plan::action& what = step.what;
    const std::size_t begin = result_.steps.size();
    if (what.join) await_receipts([&](const plan::merged_message& each) { return each.lane == step.lane; });
    switch (what.kind) {
      case plan::action_kind::signal:
        for_each_peer(what.peer, [&](int peer) { set(peer, bank_of(rank_, peer, what.tag), what.tag); });
        break;
      case plan::action_kind::wait:
        for_each_peer(what.peer, [&](int peer) { await(peer, bank_of(peer, rank_, what.tag), what.tag); });
        break;
      case plan::action_kind::copy: is_whole_reduction(what) ? combine(what) : copy(what, rank_); break;
      case plan::action_kind::load: copy(what, what.peer); break;
      case plan::action_kind::load_reduce: combine(what); break;
      case plan::action_kind::send: send(step.message); break;
      case plan::action_kind::receive:
      case plan::action_kind::receive_reduce: receive(what, step.message); break;
      default: break;  // refused during binding
    }
    if (result_.steps.size() == begin) put({});
    for (std::size_t i = begin; i + 1 < result_.steps.size(); ++i) result_.steps[i].last = false;
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  void send(std::uint32_t number) {
    const plan::merged_message& message = order_.messages[number];
    if (message.before != plan::no_message) await_receipt(message.before);
    set(message.to, bank::arrivals, message.slot);
    undrained_.push_back(number);
  }

  void receive(const plan::action& what, std::uint32_t number) {
    const plan::merged_message& message = order_.messages[number];
    await(message.from, bank::arrivals, message.slot);
    const std::size_t bytes = bytes_of_action(what);
    const std::uint64_t there = place(message.sent.from, message.sent.from_at, message.from);
    if (what.kind == plan::action_kind::receive_reduce) {
      const std::uint64_t here = source(what, rank_);
      const std::array in_order{what.message_first ? there : here, what.message_first ? here : there};
      combine(what, in_order);
    } else if (bytes != 0) {
      put({.what = stream_action_kind::copy,
           .peer = message.from,
           .to = destination(what),
           .from = there,
           .bytes = bytes});
    }
    set(message.from, bank::receipts, message.slot);
    result_.steps.back().bytes = bytes;
  }

  /// Waits for the receipts of those messages sent by this rank that are `wanted`.
  template <class Wanted>
  void await_receipts(Wanted wanted) {
    for (const std::uint32_t each : undrained_) {
      if (wanted(order_.messages[each])) await_receipt(each);
    }
    std::erase_if(undrained_, [this](std::uint32_t each) { return drained_[each]; });
  }

  void await_receipt(std::uint32_t number) {
    if (drained_[number]) return;
    const plan::merged_message& message = order_.messages[number];
    await(message.to, bank::receipts, message.slot);
    drained_[number] = true;
  }

  // ── Signals ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /// At the end: sends the acknowledgements that peers wait for, then waits for those of this rank.
  void acknowledge() {
    for_each_peer(plan::all_peers, [&](int peer) {
      if (reuse_.acknowledged(peer, rank_)) set(peer, bank::acknowledgements, 0);
    });
    for_each_peer(plan::all_peers, [&](int peer) {
      if (reuse_.acknowledged(rank_, peer)) await(peer, bank::acknowledgements, 0);
    });
  }

  bank bank_of(int from, int to, unsigned tag) const {
    return reuse_.of(from, to, tag) == plan::signal_class::late ? bank::late : bank::early;
  }

  void set(int peer, bank which, unsigned number) {
    put({.what = stream_action_kind::set, .peer = peer, .to = group_.word(peer, which, number, rank_)});
  }
  void await(int peer, bank which, unsigned number) {
    put({.what = stream_action_kind::await, .peer = peer, .to = group_.word(rank_, which, number, peer)});
  }

  // ── Elements ─────────────────────────────────────────────────────────────────────────────────────────────────────

  /// True if a single rank computes its result from its own contribution, which the operation may still have to finish.
  bool is_whole_reduction(const plan::action& what) const {
    return ranks_ == 1 && what.from == plan::region::in && what.to == plan::region::out &&
           bound_.element_kernel->finishes;
  }

  void copy(const plan::action& what, int owner) {
    const std::size_t bytes = bytes_of_action(what);
    const std::uint64_t from = source(what, owner);
    const std::uint64_t to = destination(what);
    if (bytes != 0 && from != to) {
      put({.what = stream_action_kind::copy, .peer = owner, .to = to, .from = from, .bytes = bytes});
    }
  }

  void combine(const plan::action& what) {
    std::vector<std::uint64_t> sources;
    for (int peer = 0; peer < ranks_; ++peer) sources.push_back(source(what, peer));
    combine(what, sources);
  }

  void combine(const plan::action& what, std::span<const std::uint64_t> sources) {
    const std::size_t bytes = bytes_of_action(what);
    if (bytes == 0) return;
    put({.what = stream_action_kind::combine,
         .to = destination(what),
         .bytes = bytes,
         .first_source = result_.sources.size(),
         .sources = sources.size()});
    for (const std::uint64_t each : sources) {
      result_.sources.push_back(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(each)));
    }
  }

  /// All ranks signal to the first rank that their contributions are ready; it signals back that their results are. A
  /// rank ends after that signal, so its own signal is early; that of the first rank is a reply, and late.
  void fuse() {
    constexpr int leader = 0;
    if (rank_ != leader) {
      set(leader, bank::early, 0);
      await(leader, bank::late, 1);
      return;
    }
    for_each_peer(plan::all_peers, [&](int peer) { await(peer, bank::early, 0); });
    if (const std::size_t bytes = layout_.size() * bound_.element_kernel->size; bytes != 0) {
      put({.what = stream_action_kind::fuse, .bytes = bytes});
      for (std::size_t peer = 0; peer < at_.in.size(); ++peer) {
        result_.sources.push_back(reinterpret_cast<const void*>(static_cast<std::uintptr_t>(at_.in[peer])));
        result_.destinations.push_back(reinterpret_cast<void*>(static_cast<std::uintptr_t>(at_.out[peer])));
      }
    }
    for_each_peer(plan::all_peers, [&](int peer) { set(peer, bank::late, 1); });
  }

  void put(stream_step what) {
    what.lane = lane_;
    what.position = position_;
    result_.steps.push_back(what);
  }

  std::size_t bytes_of_action(const plan::action& what) const {
    return what.count == 0 ? 0 : layout_.chunks(what.chunk, what.count).size * bound_.element_kernel->size;
  }

  std::uint64_t source(const plan::action& what, int owner) const { return place(what.from, what.from_at, owner); }
  std::uint64_t destination(const plan::action& what) const { return place(what.to, what.to_at, rank_); }

  std::uint64_t place(plan::region where, std::uint32_t at, int owner) const {
    const auto index = static_cast<std::size_t>(owner);
    const std::size_t size = bound_.element_kernel->size;
    if (where == plan::region::scratch) return at_.scratch[index] + at * layout_.largest_chunk() * size;
    const std::size_t origin = origin_of(bound_.plan.collective(), where, layout_, owner);
    const std::uint64_t base = where == plan::region::in ? at_.in[index] : at_.out[index];
    return base + (layout_.begin(at) - origin) * size;
  }

  template <class Act>
  void for_each_peer(std::int32_t peer, Act act) {
    if (peer != plan::all_peers) return act(peer);
    for (int each = 0; each < ranks_; ++each) {
      if (each != rank_) act(each);
    }
  }

  const Group& group_;
  const stream_binding& bound_;
  const stream_buffers& at_;
  const plan::signal_reuse& reuse_;
  const plan::merged_lanes& order_;
  const int ranks_;
  const int rank_;
  const plan::layout layout_;
  unsigned lane_ = 0;
  unsigned position_ = 0;
  std::vector<std::uint32_t> undrained_;  ///< messages sent by this rank that may not be drained
  std::vector<bool> drained_;             ///< for each message of the plan
  stream_program result_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
