// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The active operations of a communicator in virtual time, found by the events that they await. A simulated world polls
/// an operation only after such an event: if it polled all, n operations in flight would take n² polls.
#pragma once

#include <hocket/communicator/active_operations.hpp>
#include <hocket/core/config.hpp>
#include <hocket/transport/operation_event.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Operation>
class indexed_operations : public active_operations<Operation> {
  using base = active_operations<Operation>;
  using event = transport::operation_event;

 public:
  /// Does nothing if `one` is not in the list.
  void remove(Operation& one) noexcept {
    if (index_ != nullptr) {
      if (index_->last == &one) index_->last = base::before(one);
      index_->forget(&one);
    }
    base::remove(one);
  }

  /// Calls `act(operation)`, which polls it, for each operation that `now` may concern, in the order of the list:
  /// those that await `now` or every event; those of a plan whose turn has come, up to number `last_turn()`; and those
  /// that were added since. Of several that await the same message only the first can proceed, and then the next one.
  template <class LastTurn, class Act>
  void visit_concerned(const event& now, LastTurn last_turn, Act act) {
    if (index_ == nullptr) {
      if (base::size() <= most_without_index) return visit_all(act);
      index_ = std::make_unique<index>();
      index_->next_turn = last_turn() + 1;
    }
    index& known = *index_;
    bool is_open = true;  // the next operation that awaits `now` may proceed
    for (std::uint64_t behind = 0;;) {
      add_new(known);
      const entry* next = known.first(event{}, behind);
      if (is_open) next = earlier(next, known.first(now, behind));
      next = earlier(next, known.first_in_turn(last_turn(), behind));
      if (next == nullptr) return;
      const entry found = *next;
      behind = found.number;
      if (found.awaited == event::step(known.next_turn)) ++known.next_turn;
      act(*found.of);
      if (!known.renew(found)) continue;
      if (found.awaited == now) is_open = false;
    }
  }

  /// Calls `act(operation)` for each operation.
  template <class Act>
  void visit_all(Act act) {
    for (Operation* const each : *this) act(*each);
  }

 private:
  /// To poll so few operations takes less time than to find those that an event concerns.
  static constexpr std::size_t most_without_index = 16;

  struct entry {
    event awaited;
    std::uint64_t number = 0;  ///< in the order of the list
    Operation* of = nullptr;

    friend bool operator<(const entry& a, const entry& b) noexcept {
      return a.awaited == b.awaited ? a.number < b.number : a.awaited < b.awaited;
    }
  };

  struct index {
    struct item {
      std::uint64_t number = 0;
      transport::awaited_events awaited = transport::every_event;
      transport::awaited_events awaited_next = transport::every_event;  ///< differs if memory ran out for its entries
    };

    /// Returns the first operation after number `behind` that awaits `what`; null if there is none.
    const entry* first(const event& what, std::uint64_t behind) const noexcept {
      const auto found = entries.upper_bound({what, behind, nullptr});
      return found != entries.end() && found->awaited == what ? &*found : nullptr;
    }

    /// Returns the first operation whose turn has come since it was polled.
    const entry* first_in_turn(std::uint32_t last_turn, std::uint64_t behind) noexcept {
      for (; next_turn != last_turn + 1; ++next_turn) {
        const entry* const found = first(event::step(next_turn), 0);
        if (found != nullptr) return found->number > behind ? found : nullptr;
      }
      return nullptr;
    }

    void add(Operation* one, std::uint64_t number) {
      const item& made = items.try_emplace(one, item{number}).first->second;
      entries.insert({made.awaited[0], made.number, one});
    }

    void forget(Operation* one) noexcept {
      const auto found = items.find(one);
      if (found == items.end()) return;
      const item& gone = found->second;
      for (const event& each : gone.awaited) entries.erase({each, gone.number, one});
      for (const event& each : gone.awaited_next) entries.erase({each, gone.number, one});
      items.erase(found);
    }

    /// Finds out which events an operation awaits now that it was polled. Returns whether that in `polled` is one.
    bool renew(const entry& polled) {
      const auto found = items.find(polled.of);
      if (found == items.end() || found->second.number != polled.number) return false;
      if (polled.of->over()) {
        forget(polled.of);
        return false;
      }
      const transport::awaited_events now = polled.of->awaited_events();
      transport::awaited_events& known = found->second.awaited;
      found->second.awaited_next = now;
      if (now != known) {
        for (const event& each : now) {
          if (each.what != event::kind::none) entries.insert({each, polled.number, polled.of});
        }
        for (const event& each : known) {
          if (each != now[0] && each != now[1]) entries.erase({each, polled.number, polled.of});
        }
        known = now;
      }
      return polled.awaited == now[0] || polled.awaited == now[1];
    }

    std::unordered_map<Operation*, item> items;
    std::set<entry> entries;
    Operation* last = nullptr;  ///< those behind it in the list are not in the index yet
    std::uint64_t numbers = 0;
    std::uint32_t next_turn = 0;  ///< operations from this one on were not polled since it was their turn
  };

  static const entry* earlier(const entry* a, const entry* b) noexcept {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    return a->number < b->number ? a : b;
  }

  void add_new(index& known) {
    auto each = known.last == nullptr ? base::begin() : ++typename base::iterator(known.last);
    for (; each != base::end(); ++each) {
      if (!(*each)->over()) known.add(*each, ++known.numbers);
      known.last = *each;
    }
  }

  std::unique_ptr<index> index_;  ///< null until there are many
};

}  // namespace detail
HOCKET_END_NAMESPACE
