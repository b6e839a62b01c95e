// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The list of a communicator's operations that were started and are not complete.
///
/// Thousands of messages can be in flight, so adding and removing takes constant time, and a call can advance operations
/// in turn, some at a time. The links are part of the operations: nothing is allocated.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <iterator>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Operation>
class active_operations;

/// Base class of `Operation`, by which it is in at most one list.
template <class Operation>
class active_link {
 public:
  active_link() = default;
  active_link(const active_link&) = delete;
  active_link& operator=(const active_link&) = delete;

 protected:
  ~active_link() = default;

 private:
  friend active_operations<Operation>;

  Operation* before_ = nullptr;
  Operation* behind_ = nullptr;
  bool is_active_ = false;
};

/// Operations in the order in which they were added. Destroy it after them, or once they are removed.
template <class Operation>
class active_operations {
  static active_link<Operation>& link(Operation& one) noexcept { return one; }

 public:
  class iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Operation*;
    using difference_type = std::ptrdiff_t;
    using pointer = Operation* const*;
    using reference = Operation*;

    iterator() = default;
    explicit iterator(Operation* at) noexcept : at_(at) {}
    Operation* operator*() const noexcept { return at_; }
    iterator& operator++() noexcept {
      at_ = link(*at_).behind_;
      return *this;
    }
    iterator operator++(int) noexcept { return std::exchange(*this, iterator(link(*at_).behind_)); }
    bool operator==(const iterator&) const = default;

   private:
    Operation* at_ = nullptr;
  };

  active_operations() = default;
  active_operations(const active_operations&) = delete;
  active_operations& operator=(const active_operations&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  std::size_t size() const noexcept { return size_; }
  iterator begin() const noexcept { return iterator(first_); }
  iterator end() const noexcept { return iterator(); }

  void add(Operation& one) noexcept {
    link(one).before_ = last_;
    link(one).behind_ = nullptr;
    link(one).is_active_ = true;
    (last_ == nullptr ? first_ : link(*last_).behind_) = &one;
    last_ = &one;
    ++size_;
  }

  /// Does nothing if `one` is not in the list.
  void remove(Operation& one) noexcept {
    active_link<Operation>& leaving = link(one);
    if (!leaving.is_active_) return;
    leaving.is_active_ = false;
    (leaving.before_ == nullptr ? first_ : link(*leaving.before_).behind_) = leaving.behind_;
    (leaving.behind_ == nullptr ? last_ : link(*leaving.behind_).before_) = leaving.before_;
    if (turn_ == &one) turn_ = leaving.behind_;
    --size_;
  }

  /// Returns the operation whose turn it is; the next call returns the one behind it, and after the last the first. The
  /// list must not be empty. Operations may be added and removed between calls.
  Operation* take_turn() noexcept {
    Operation* const one = turn_ == nullptr ? first_ : turn_;
    turn_ = link(*one).behind_;
    return one;
  }

 protected:
  static Operation* before(Operation& one) noexcept { return link(one).before_; }

 private:
  Operation* first_ = nullptr;
  Operation* last_ = nullptr;
  Operation* turn_ = nullptr;  ///< null: that of the first
  std::size_t size_ = 0;
};

}  // namespace detail
HOCKET_END_NAMESPACE
