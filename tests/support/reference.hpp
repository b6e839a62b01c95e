// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Computes the result of a plan, exact to the bit, without the engine: all ranks in one loop, one value at a time.
///
/// In floating point a tree or a ring differs from a left fold in rank order, so results are compared with this
/// evaluation of the plan's actions. It shares with the engine only the specification: the plan, its layout and
/// `hocket::reduction`, with which partial results are widened, combined and narrowed once per action.
///
/// @code
/// const auto wanted = hocket_test::evaluate<float>(plan::double_tree{4}, ranks, layout, inputs, std::plus<>{});
/// @endcode
#pragma once

#include <hocket/operation/traits.hpp>
#include <hocket/plan/layout.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace hocket_test {

/// Operation for plans that combine nothing.
struct moves_only {
  template <class T>
  constexpr T operator()(const T& a, const T&) const {
    return a;
  }
};

/// Returns the layout of a call with `block_elements` elements per block.
inline hocket::plan::layout layout_for(const hocket::plan::any_algorithm& plan, int ranks, std::size_t block_elements) {
  return {block_elements, static_cast<std::uint32_t>(plan.collective().blocks(ranks)),
          plan.shape(ranks).chunks_per_block};
}

/// Returns the elements of the whole vector that the buffer `where` of a rank holds. `out` of a broadcast's root, and that
/// of its other ranks, is its input.
inline hocket::plan::extent held(const hocket::plan::collective& what, hocket::plan::region where,
                                 const hocket::plan::layout& layout, int rank) {
  switch (where == hocket::plan::region::in ? what.in_part(rank) : what.out_part(rank)) {
    case hocket::plan::buffer_part::nothing: return {};
    case hocket::plan::buffer_part::own_block: return layout.block(static_cast<std::uint32_t>(rank));
    case hocket::plan::buffer_part::whole: break;
  }
  return {0, layout.size()};
}

/// Returns the number of elements of a rank's input, as `evaluate` needs it.
inline std::size_t input_size(const hocket::plan::any_algorithm& plan, const hocket::plan::layout& layout, int rank) {
  const hocket::plan::collective what = plan.collective();
  const bool from_out = what.kind == hocket::plan::collective_kind::broadcast;
  return held(what, from_out ? hocket::plan::region::out : hocket::plan::region::in, layout, rank).size;
}

/// The ranks of one evaluation. See `evaluate`.
template <class T, class Op>
class evaluation {
  using reduction = hocket::reduction<Op, T>;
  using partial = typename reduction::partial;
  using accumulator = typename reduction::accumulator;
  static_assert(!std::is_same_v<partial, bool>, "std::vector<bool> has no elements to point at");

 public:
  evaluation(const hocket::plan::any_algorithm& plan, int ranks, const hocket::plan::layout& layout,
             const std::vector<std::vector<T>>& inputs, const Op& op, bool in_place)
      : in_place_(in_place || reduction::prepares), plan_(in_place_ ? plan.for_in_place() : plan), ranks_(ranks),
        layout_(layout), shape_(plan_.shape(ranks)), collective_(plan_.collective()), op_(op),
        lanes_(static_cast<std::size_t>(ranks) * shape_.lanes) {
    if (inputs.size() != static_cast<std::size_t>(ranks)) fail("needs as many inputs as ranks");
    for (int rank = 0; rank < ranks; ++rank) memory_.push_back(make_memory(rank, inputs[index(rank)]));
  }

  std::vector<std::vector<T>> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        while (advance(lane)) moved = true;
      }
    }
    for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
      if (lanes_[lane] != length_of(lane)) fail("does not end: " + name_of(lane) + " waits");
    }
    std::vector<std::vector<T>> results;
    for (int rank = 0; rank < ranks_; ++rank) results.push_back(result_of(rank));
    return results;
  }

 private:
  using action = hocket::plan::action;
  using region = hocket::plan::region;
  using action_kind = hocket::plan::action_kind;
  using kind = hocket::plan::collective_kind;

  /// Partial results, from element `origin` of the whole vector on.
  struct buffer {
    std::size_t origin = 0;
    std::vector<partial> elements;
  };
  struct rank_memory {
    buffer in, out;  ///< in-place calls do not use `out`
    std::vector<partial> scratch;
    std::map<int, std::vector<partial>> inbox;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }

  [[noreturn]] void fail(const std::string& why) const {
    throw std::logic_error(std::string("evaluate: plan ") + plan_.name() + " over " + std::to_string(ranks_) +
                           " ranks " + why);
  }

  hocket::plan::extent held_by(int rank, region where) const { return held(collective_, where, layout_, rank); }

  static buffer make_buffer(const hocket::plan::extent& range) {
    return {range.begin, std::vector<partial>(range.size)};
  }

  rank_memory make_memory(int rank, const std::vector<T>& input) {
    rank_memory made;
    const hocket::plan::extent whole{0, layout_.size()};
    made.in = make_buffer(in_place_ ? whole : held_by(rank, region::in));
    if (!in_place_) made.out = make_buffer(held_by(rank, region::out));
    made.scratch.resize(layout_.largest_chunk() * shape_.scratch);
    const bool from_out = collective_.kind == kind::broadcast;
    buffer& to = from_out && !in_place_ ? made.out : made.in;
    const std::size_t first = held_by(rank, from_out ? region::out : region::in).begin - to.origin;
    const std::size_t wanted = input_size(plan_, layout_, rank);
    if (input.size() != wanted) {
      fail("needs " + std::to_string(wanted) + " elements of input, not " + std::to_string(input.size()));
    }
    for (std::size_t i = 0; i < input.size(); ++i) to.elements[first + i] = prepared(input[i]);
    return made;
  }

  partial prepared(const T& value) const {
    if constexpr (reduction::prepares) {
      return reduction::prepare(op_, value);
    } else {
      return value;
    }
  }

  T finished(const partial& value) const {
    if constexpr (reduction::prepares) {
      return reduction::finish(op_, value, ranks_);
    } else {
      return value;
    }
  }

  std::vector<T> result_of(int rank) {
    const buffer& from = in_place_ ? memory_[index(rank)].in : memory_[index(rank)].out;
    const auto [begin, count] = held_by(rank, region::out);
    const std::size_t first = begin - from.origin;
    std::vector<T> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(finished(from.elements[first + i]));
    return result;
  }

  // ── Memory ───────────────────────────────────────────────────────────────────────────────────────────────────────

  std::size_t size_of(const action& what) const {
    return what.count == 0 ? 0 : layout_.chunks(what.chunk, what.count).size;
  }

  /// Returns the place of the elements of `what` that begin at `at`.
  partial* find(int rank, region where, std::uint32_t at, const action& what) {
    rank_memory& memory = memory_[index(rank)];
    std::vector<partial>* elements = &memory.scratch;
    std::size_t begin = at * layout_.largest_chunk();
    if (where == region::in || where == region::out) {
      buffer& found = where == region::in || in_place_ ? memory.in : memory.out;
      elements = &found.elements;
      begin = layout_.begin(at);
      if (begin < found.origin) fail("reaches before a buffer");
      begin -= found.origin;
    }
    if (begin + size_of(what) > elements->size()) fail("reaches beyond a buffer");
    return elements->data() + begin;
  }

  std::vector<partial> read(int rank, region where, std::uint32_t at, const action& what) {
    if (size_of(what) == 0) return {};
    const partial* const from = find(rank, where, at, what);
    return std::vector<partial>(from, from + size_of(what));
  }

  void write(int rank, const action& what, const std::vector<partial>& values) {
    if (values.empty()) return;
    partial* const to = find(rank, what.to, what.to_at, what);
    for (std::size_t i = 0; i < values.size(); ++i) to[i] = values[i];
  }

  /// Returns values[0] ∘ values[1] ∘ …, widened throughout and narrowed once.
  std::vector<partial> combine(const std::vector<std::vector<partial>>& values) const {
    std::vector<partial> result;
    for (std::size_t i = 0; i < values.front().size(); ++i) {
      auto sum = static_cast<accumulator>(values.front()[i]);
      for (std::size_t k = 1; k < values.size(); ++k) {
        sum = reduction::combine(op_, sum, static_cast<accumulator>(values[k][i]));
      }
      result.push_back(static_cast<partial>(sum));
    }
    return result;
  }

  // ── Actions ──────────────────────────────────────────────────────────────────────────────────────────────────────

  int rank_of(std::size_t lane) const { return static_cast<int>(lane / shape_.lanes); }
  unsigned number_of(std::size_t lane) const { return static_cast<unsigned>(lane % shape_.lanes); }
  unsigned length_of(std::size_t lane) const { return plan_.length(ranks_, rank_of(lane), number_of(lane)); }
  std::string name_of(std::size_t lane) const {
    return "lane " + std::to_string(number_of(lane)) + " of rank " + std::to_string(rank_of(lane)) + " at step " +
           std::to_string(lanes_[lane]);
  }

  /// Runs the next action of a lane, if it does not have to wait. Messages are copied when they are sent, so joins,
  /// which only state how long a buffer must stay unchanged, never wait.
  bool advance(std::size_t lane) {
    if (lanes_[lane] == length_of(lane)) return false;
    const int rank = rank_of(lane);
    if (!perform(rank, plan_.at(ranks_, rank, number_of(lane), lanes_[lane]))) return false;
    ++lanes_[lane];
    return true;
  }

  bool perform(int rank, const action& what) {
    switch (what.kind) {
      case action_kind::copy: write(rank, what, read(rank, what.from, what.from_at, what)); return true;
      case action_kind::load: write(rank, what, read(what.peer, what.from, what.from_at, what)); return true;
      case action_kind::load_reduce: write(rank, what, combine(contributions(rank, what))); return true;
      case action_kind::send:
        messages_[{rank, what.peer, what.channel}].push_back(read(rank, what.from, what.from_at, what));
        return true;
      case action_kind::receive:
      case action_kind::receive_reduce: return receive(rank, what);
      case action_kind::push:
      case action_kind::signal: tell(rank, what); return true;
      case action_kind::wait: return has_heard(rank, what);
    }
    return false;
  }

  std::vector<std::vector<partial>> contributions(int rank, const action& what) {
    std::vector<std::vector<partial>> all;
    for (int each = 0; each < ranks_; ++each) {
      if (what.from != region::inbox) {
        all.push_back(read(each, what.from, what.from_at, what));
      } else {
        all.push_back(each == rank ? read(rank, region::in, what.chunk, what) : memory_[index(rank)].inbox[each]);
      }
    }
    return all;
  }

  bool receive(int rank, const action& what) {
    auto& queue = messages_[{what.peer, rank, what.channel}];
    if (queue.empty()) return false;
    const std::vector<partial> message = std::move(queue.front());
    queue.pop_front();
    if (message.size() != size_of(what)) fail("receives a message of another size");
    if (what.kind == action_kind::receive) {
      write(rank, what, message);
      return true;
    }
    const auto local = read(rank, what.from, what.from_at, what);
    write(rank, what, what.message_first ? combine({message, local}) : combine({local, message}));
    return true;
  }

  template <class Act>
  void for_each_peer(int rank, const action& what, Act act) {
    for (int peer = 0; peer < ranks_; ++peer) {
      if (peer != rank && (what.peer == hocket::plan::all_peers || what.peer == peer)) act(peer);
    }
  }

  void tell(int rank, const action& what) {
    const bool pushes = what.kind == action_kind::push;
    for_each_peer(rank, what, [&](int peer) {
      if (pushes) memory_[index(peer)].inbox[rank] = read(rank, what.from, what.from_at, what);
      signals_.insert({rank, peer, what.tag, pushes});
    });
  }

  bool has_heard(int rank, const action& what) {
    bool all = true;
    const bool pushed = what.from == region::inbox;
    for_each_peer(rank, what, [&](int peer) { all = all && signals_.count({peer, rank, what.tag, pushed}) != 0; });
    return all;
  }

  const bool in_place_;
  const hocket::plan::any_algorithm plan_;
  const int ranks_;
  const hocket::plan::layout layout_;
  const hocket::plan::shape shape_;
  const hocket::plan::collective collective_;
  const Op op_;
  std::vector<rank_memory> memory_;
  std::vector<unsigned> lanes_;                                                     ///< next action of each lane
  std::map<std::tuple<int, int, int>, std::deque<std::vector<partial>>> messages_;  ///< from, to, channel
  std::set<std::tuple<int, int, int, bool>> signals_;                               ///< from, to, tag, with a push
};

/// Returns each rank's `out`, as the caller of the collective sees it, if every rank passes inputs[rank] as `in` (for a
/// broadcast: as `out`). A rank that has no `in` passes no elements, and one that has no `out` gets none. `in_place`: both are one buffer, and the plan runs in its in-place form, as it always does for
/// operations with `prepare`. Throws std::logic_error if the plan does not end or leaves its buffers.
template <class T, class Op = moves_only>
std::vector<std::vector<T>> evaluate(const hocket::plan::any_algorithm& plan, int ranks,
                                     const hocket::plan::layout& layout, const std::vector<std::vector<T>>& inputs,
                                     const Op& op = {}, bool in_place = false) {
  return evaluation<T, Op>(plan, ranks, layout, inputs, op, in_place).run();
}

}  // namespace hocket_test
