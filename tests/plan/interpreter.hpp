// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs a plan on concrete values under one random schedule. The interpreter shares no code and no method with the
/// prover: it has no clocks and no symbolic expressions, only memory, queues and random choices. A plan that the prover
/// accepts must give correct results under every schedule that is tried.
#pragma once

#include <hocket/plan/layout.hpp>
#include <hocket/plan/listed.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace hocket_test {

namespace plan = hocket::plan;

/// When messages leave the sender's memory.
enum class drain : std::uint8_t { at_once, when_received, by_chance };

struct schedule {
  std::uint64_t seed = 0;
  drain messages = drain::by_chance;
  bool in_place = false;
};

/// The map x ↦ a·x + b. Composition of such maps is associative but not commutative; addition is commutative.
struct number {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  friend bool operator==(const number&, const number&) = default;
};

class interpreter {
 public:
  interpreter(const plan::listed& plan, schedule how)
      : plan_(plan), how_(how), ranks_(plan.ranks()), shape_(plan.shape(ranks_)), collective_(plan.collective()),
        random_(how.seed) {
    layout_ = {2 * std::size_t{shape_.chunks_per_block} + random_() % (shape_.chunks_per_block + 1),
               static_cast<std::uint32_t>(collective_.blocks(ranks_)), shape_.chunks_per_block};
    if (collective_.kind == plan::collective_kind::barrier) layout_ = {0, layout_.blocks(), layout_.chunks_per_block()};
    for (int rank = 0; rank < ranks_; ++rank) memory_.push_back(make_memory());
    contributions_ = memory_of_all(&rank_memory::in);
    results_.resize(memory_.size());
    if (collective_.kind == plan::collective_kind::broadcast) contributions_ = memory_of_all(&rank_memory::out);
    lanes_.resize(memory_.size() * shape_.lanes);
  }

  /// Runs the plan. Returns the fault, or an empty string if the result is correct.
  std::string run() {
    std::vector<std::size_t> order(lanes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const bool stubborn = random_() % 2 == 0;  // one lane runs as far as it can, then the next
    std::shuffle(order.begin(), order.end(), random_);
    for (;;) {
      if (!stubborn) std::shuffle(order.begin(), order.end(), random_);
      const bool moved = std::any_of(order.begin(), order.end(), [&](std::size_t lane) { return advance(lane); });
      if (!fault_.empty()) return fault_;
      if (moved) continue;
      return finished() ? left_over() ? "a message or signal was not received" : judge() : "deadlock";
    }
  }

 private:
  using numbers = std::vector<number>;

  struct rank_memory {
    numbers in, out, scratch;
    std::vector<numbers> inbox;
    bool begun = false;
    bool ended = false;
  };
  struct message {
    numbers data;
    bool taken = false;  // copied from the sender's memory
    bool received = false;
    int sender = 0;
    plan::action what;
  };
  struct lane_state {
    std::size_t position = 0;
    std::vector<std::size_t> sent;
    bool ended = false;
  };

  number any_number() { return {random_() | 1, random_()}; }
  numbers any_numbers(std::size_t n) {
    numbers all(n);
    for (number& each : all) each = any_number();
    return all;
  }

  rank_memory make_memory() {
    const std::size_t n = layout_.size();
    rank_memory made;
    made.in = any_numbers(n);
    made.out = any_numbers(n);
    made.scratch = any_numbers(layout_.largest_chunk() * shape_.scratch);
    for (int peer = 0; peer < ranks_; ++peer) made.inbox.push_back(any_numbers(n));
    return made;
  }

  std::vector<numbers> memory_of_all(numbers rank_memory::*which) const {
    std::vector<numbers> all;
    for (const rank_memory& each : memory_) all.push_back(each.*which);
    return all;
  }

  bool fail(const std::string& why) {
    fault_ = why;
    return false;
  }

  rank_memory& memory_at(int rank) { return memory_[static_cast<std::size_t>(rank)]; }

  /// Returns the elements of the chunks of `a`, beginning at chunk or slot `at`; null if they are out of range.
  number* find(int rank, plan::region where, std::uint32_t at, const plan::action& a) {
    rank_memory& mine = memory_at(rank);
    if (where == plan::region::in && how_.in_place) where = plan::region::out;
    const std::size_t begin = where == plan::region::scratch ? at * layout_.largest_chunk() : layout_.begin(at);
    numbers& all = where == plan::region::in ? mine.in : where == plan::region::out ? mine.out : mine.scratch;
    if (begin + size_of(a) > all.size()) {
      fail("out of range");
      return nullptr;
    }
    return all.data() + begin;
  }

  std::size_t size_of(const plan::action& a) const { return layout_.chunks(a.chunk, a.count).size; }

  number combine(number x, number y) const {
    if (shape_.order == plan::combination_order::any_order) return {x.a + y.a, x.b + y.b};
    return {x.a * y.a, x.a * y.b + x.b};
  }

  bool advance(std::size_t lane) {
    lane_state& state = lanes_[lane];
    if (state.ended) return false;
    const int rank = static_cast<int>(lane / shape_.lanes);
    const auto& actions = plan_.lane(rank, static_cast<unsigned>(lane % shape_.lanes));
    begin(rank);
    if (state.position == actions.size()) {
      if (!joined(state)) return false;
      state.ended = true;
      end(rank);
      return true;
    }
    const plan::action& a = actions[state.position];
    if (a.join && !joined(state)) return false;
    if (!perform(rank, state, a)) return false;
    ++state.position;
    return true;
  }

  void begin(int rank) {
    rank_memory& mine = memory_at(rank);
    if (mine.begun) return;
    mine.begun = true;
    if (how_.in_place && collective_.kind != plan::collective_kind::broadcast) mine.out = mine.in;
  }

  /// When all lanes of `rank` have ended: stores the result, and overwrites the buffers as their owner may.
  void end(int rank) {
    for (unsigned lane = 0; lane < shape_.lanes; ++lane) {
      if (!lanes_[static_cast<std::size_t>(rank) * shape_.lanes + lane].ended) return;
    }
    rank_memory& mine = memory_at(rank);
    mine.ended = true;
    results_[static_cast<std::size_t>(rank)] = mine.out;
    mine.in = any_numbers(mine.in.size());
    mine.out = any_numbers(mine.out.size());
    mine.scratch = any_numbers(mine.scratch.size());
    if (collective_.kind == plan::collective_kind::barrier) {
      for (const rank_memory& each : memory_) {
        if (!each.begun) fail("left the barrier too early");
      }
    }
  }

  bool joined(const lane_state& state) const {
    return std::all_of(state.sent.begin(), state.sent.end(), [&](std::size_t m) { return messages_[m].taken; });
  }

  bool perform(int rank, lane_state& state, const plan::action& a) {
    if (a.peer >= ranks_ || a.peer == rank) return fail("no such peer");
    if (std::size_t{a.chunk} + a.count > layout_.chunk_count()) return fail("no such chunk");
    switch (a.kind) {
      case plan::action_kind::copy: return move(rank, a, find(rank, a.from, a.from_at, a));
      case plan::action_kind::load:
        if (!looks_at(a.peer)) return fail("peer has not begun, or has ended");
        return move(rank, a, find(a.peer, a.from, a.from_at, a));
      case plan::action_kind::load_reduce: return load_reduce(rank, a);
      case plan::action_kind::send: return send(rank, state, a);
      case plan::action_kind::receive:
      case plan::action_kind::receive_reduce: return receive(rank, a);
      case plan::action_kind::push:
      case plan::action_kind::signal: return tell(rank, a);
      case plan::action_kind::wait: return wait(rank, a);
    }
    return false;
  }

  bool looks_at(int rank) const {
    const rank_memory& theirs = memory_[static_cast<std::size_t>(rank)];
    return theirs.begun && !theirs.ended;
  }

  bool move(int rank, const plan::action& a, const number* from) {
    if (from == nullptr) return false;
    return store(rank, a, numbers(from, from + size_of(a)));
  }

  bool store(int rank, const plan::action& a, const numbers& what) {
    number* to = a.count == 0 ? nullptr : find(rank, a.to, a.to_at, a);
    if (a.count != 0 && to == nullptr) return false;
    std::copy(what.begin(), what.end(), to);
    return true;
  }

  bool load_reduce(int rank, const plan::action& a) {
    numbers sum(size_of(a));
    for (int each = 0; each < ranks_; ++each) {
      const number* from = nullptr;
      if (a.from == plan::region::inbox) {
        numbers& pushed = memory_at(rank).inbox[static_cast<std::size_t>(each)];
        from = each == rank ? find(rank, plan::region::in, a.chunk, a) : pushed.data();
      } else {
        if (!looks_at(each)) return fail("peer has not begun, or has ended");
        from = find(each, a.from, a.from_at, a);
      }
      if (from == nullptr) return false;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = each == 0 ? from[i] : combine(sum[i], from[i]);
    }
    return store(rank, a, sum);
  }

  bool take(message& m) {
    if (m.taken) return true;
    m.taken = true;
    if (m.what.count == 0) return true;
    const number* from = find(m.sender, m.what.from, m.what.from_at, m.what);
    if (from == nullptr) return false;
    m.data.assign(from, from + size_of(m.what));
    return true;
  }

  bool send(int rank, lane_state& state, const plan::action& a) {
    state.sent.push_back(messages_.size());
    channels_[{rank, a.peer, a.channel}].push_back(messages_.size());
    messages_.push_back({{}, false, false, rank, a});
    const bool now = how_.messages == drain::at_once || (how_.messages == drain::by_chance && random_() % 2 == 0);
    return !now || take(messages_.back());
  }

  bool receive(int rank, const plan::action& a) {
    std::deque<std::size_t>& queue = channels_[{a.peer, rank, a.channel}];
    if (queue.empty()) return false;
    message& m = messages_[queue.front()];
    queue.pop_front();
    if (!take(m)) return false;
    m.received = true;
    if (m.data.size() != size_of(a)) return fail("message of another size");
    if (a.kind == plan::action_kind::receive) return store(rank, a, m.data);
    const number* local = find(rank, a.from, a.from_at, a);
    if (local == nullptr) return false;
    numbers sum(m.data.size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] = a.message_first ? combine(m.data[i], local[i]) : combine(local[i], m.data[i]);
    }
    return store(rank, a, sum);
  }

  template <class Visit>
  bool all_of_peers(int rank, const plan::action& a, Visit visit) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank && (a.peer == plan::all_peers || a.peer == peer) && !visit(peer)) return false;
    }
    return true;
  }

  /// Signals of pushes have other numbers than signals that are sent alone.
  static int signal_of(const plan::action& a) {
    const bool pushed =
        a.kind == plan::action_kind::push || (a.kind == plan::action_kind::wait && a.from == plan::region::inbox);
    return pushed ? -1 - int{a.tag} : int{a.tag};
  }

  bool tell(int rank, const plan::action& a) {
    return all_of_peers(rank, a, [&](int peer) {
      if (a.kind == plan::action_kind::push) {
        const number* from = find(rank, a.from, a.from_at, a);
        if (from == nullptr) return false;
        std::copy(from, from + size_of(a), memory_at(peer).inbox[static_cast<std::size_t>(rank)].begin());
      }
      if (!signals_.insert({{rank, peer, signal_of(a)}, false}).second) return fail("tag reused");
      return true;
    });
  }

  bool wait(int rank, const plan::action& a) {
    const auto there = [&](int peer) { return signals_.count({peer, rank, signal_of(a)}) != 0; };
    if (!all_of_peers(rank, a, there)) return false;
    return all_of_peers(rank, a, [&](int peer) {
      bool& seen = signals_.at({peer, rank, signal_of(a)});
      return std::exchange(seen, true) ? fail("tag reused") : true;
    });
  }

  bool finished() const {
    return std::all_of(lanes_.begin(), lanes_.end(), [](const lane_state& lane) { return lane.ended; });
  }

  bool left_over() const {
    return !std::all_of(messages_.begin(), messages_.end(), [](const message& m) { return m.received; }) ||
           !std::all_of(signals_.begin(), signals_.end(), [](const auto& signal) { return signal.second; });
  }

  std::string judge() {
    for (int rank = 0; rank < ranks_; ++rank) {
      for (std::uint32_t block = 0; block < layout_.blocks(); ++block) {
        const plan::buffer_part part = collective_.out_part(rank);
        const bool own = static_cast<int>(block) == rank;
        if (part == plan::buffer_part::nothing || (part == plan::buffer_part::own_block && !own)) continue;
        for (std::size_t i = 0; i < layout_.block_size(); ++i) {
          const number found = results_[static_cast<std::size_t>(rank)][block * layout_.block_size() + i];
          if (found != wanted(rank, block, i)) return "wrong result";
        }
      }
    }
    return {};
  }

  number wanted(int rank, std::uint32_t block, std::size_t i) const {
    const std::size_t n = layout_.block_size();
    switch (collective_.kind) {
      case plan::collective_kind::broadcast: return contributions_[static_cast<std::size_t>(collective_.root)][i];
      case plan::collective_kind::all_gather:
      case plan::collective_kind::gather: return contributions_[block][block * n + i];
      case plan::collective_kind::scatter:
        return contributions_[static_cast<std::size_t>(collective_.root)][block * n + i];
      case plan::collective_kind::all_to_all: return contributions_[block][static_cast<std::size_t>(rank) * n + i];
      default: break;
    }
    number sum = contributions_[0][block * n + i];
    for (std::size_t each = 1; each < contributions_.size(); ++each) {
      sum = combine(sum, contributions_[each][block * n + i]);
    }
    return sum;
  }

  const plan::listed& plan_;
  schedule how_;
  int ranks_;
  plan::shape shape_;
  plan::collective collective_;
  std::mt19937_64 random_;
  plan::layout layout_;
  std::vector<rank_memory> memory_;
  std::vector<numbers> contributions_;
  std::vector<numbers> results_;
  std::vector<lane_state> lanes_;
  std::vector<message> messages_;
  std::map<std::tuple<int, int, int>, std::deque<std::size_t>> channels_;
  std::map<std::tuple<int, int, int>, bool> signals_;
  std::string fault_;
};

/// Tries `schedules` schedules of each kind. Returns the first fault, or an empty string.
inline std::string first_fault(const plan::listed& plan, int schedules, bool in_place) {
  for (int i = 0; i < schedules; ++i) {
    for (const drain messages : {drain::at_once, drain::when_received, drain::by_chance}) {
      std::string fault = interpreter(plan, {static_cast<std::uint64_t>(i) + 1, messages, in_place}).run();
      if (!fault.empty()) return fault;
    }
  }
  return {};
}

}  // namespace hocket_test
