// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counts how much memory training uses, and for what. Estimates of the required memory can be checked against this
/// count: every allocation of gradients, optimizer states and parameters goes through an account of a ledger.
///
/// @code
/// hocket::memory_ledger ledger;
/// auto gradients = hocket::gradients<float>(comm, layout, ..., ledger.account("gradients"));
/// std::printf("%zu bytes now, %zu at most\n", ledger.bytes("gradients"), ledger.peak_bytes());
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/published_count.hpp>

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Bytes of an account, which the thread of its rank changes and any thread reads.
class account_bytes {
 public:
  void add(std::size_t bytes) noexcept {
    now_.add(bytes);
    if (now_.value() > peak_.value()) peak_.set(now_.value());
  }
  void subtract(std::size_t bytes) noexcept { now_.subtract(bytes); }
  void forget_peak() noexcept { peak_.set(now_.value()); }

  std::size_t now() const noexcept { return static_cast<std::size_t>(now_.value()); }
  std::size_t peak() const noexcept { return static_cast<std::size_t>(peak_.value()); }

 private:
  published_count now_, peak_;
};

/// The accounts of a ledger. Outlives it for as long as a reader has them.
class ledger_accounts {
 public:
  struct entry {
    std::string name;
    account_bytes bytes;
  };

  /// Returns the account with this name, and creates it on first use.
  account_bytes& find(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    for (entry& each : entries_) {
      if (each.name == name) return each.bytes;
    }
    entry& made = entries_.emplace_back();
    made.name = name;
    return made.bytes;
  }
  /// Calls `visit(name, bytes)` for each account.
  template <class Visit>
  void visit(Visit visit) {
    const std::scoped_lock lock(mutex_);
    for (entry& each : entries_) visit(each.name, each.bytes);
  }
  account_bytes& total() noexcept { return total_; }

  /// States that the ledger is destroyed: nothing is counted any more.
  void end() noexcept { has_ended_.store(true, std::memory_order_release); }
  bool has_ended() const noexcept { return has_ended_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> has_ended_{false};
  std::mutex mutex_;  // for new entries, while others are read
  std::deque<entry> entries_;
  account_bytes total_;
};

struct memory_ledger_access;

}  // namespace detail

/// Counts the bytes that are requested through its accounts.
///
/// **Threads.** One at a time: each rank needs its own. **Lifetime.** Must outlive all memory allocated through it.
class memory_ledger {
 public:
  /// Memory comes from `upstream`, which must outlive the ledger.
  explicit memory_ledger(std::pmr::memory_resource* upstream = std::pmr::new_delete_resource()) : upstream_(upstream) {}
  memory_ledger(const memory_ledger&) = delete;
  memory_ledger& operator=(const memory_ledger&) = delete;
  ~memory_ledger() { counts_->end(); }

  /// Returns the account with this name, and creates it on first use.
  std::pmr::memory_resource* account(std::string_view name) {
    detail::account_bytes& counted = counts_->find(name);
    for (account_memory& each : accounts_) {
      if (&each.counted == &counted) return &each;
    }
    return &accounts_.emplace_back(*upstream_, counted, counts_->total());
  }

  /// Bytes that are currently allocated: by all accounts, or by one.
  std::size_t bytes() const noexcept { return counts_->total().now(); }
  std::size_t bytes(std::string_view name) const {
    std::size_t found = 0;
    counts_->visit([&](const std::string& each, const auto& its) { found += each == name ? its.now() : 0; });
    return found;
  }

  /// The highest number of bytes that were allocated at the same time.
  std::size_t peak_bytes() const noexcept { return counts_->total().peak(); }
  std::size_t peak_bytes(std::string_view name) const {
    std::size_t found = 0;
    counts_->visit([&](const std::string& each, const auto& its) { found += each == name ? its.peak() : 0; });
    return found;
  }

  /// Resets the peaks to the current values, for example to measure a single step.
  void forget_peaks() {
    counts_->total().forget_peak();
    counts_->visit([](const std::string&, detail::account_bytes& each) { each.forget_peak(); });
  }

 private:
  friend struct detail::memory_ledger_access;

  struct account_memory final : std::pmr::memory_resource {
    account_memory(std::pmr::memory_resource& from, detail::account_bytes& own, detail::account_bytes& all)
        : upstream(from), counted(own), total(all) {}

    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      void* const memory = upstream.allocate(bytes, alignment);
      counted.add(bytes);
      total.add(bytes);
      return memory;
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
      upstream.deallocate(memory, bytes, alignment);
      counted.subtract(bytes);
      total.subtract(bytes);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    std::pmr::memory_resource& upstream;
    detail::account_bytes& counted;
    detail::account_bytes& total;
  };

  std::pmr::memory_resource* upstream_;
  std::shared_ptr<detail::ledger_accounts> counts_ = std::make_shared<detail::ledger_accounts>();
  std::deque<account_memory> accounts_;  // a deque, because callers hold the addresses of accounts
};

namespace detail {

/// For parts of the library that show the accounts.
struct memory_ledger_access {
  static const std::shared_ptr<ledger_accounts>& accounts(const memory_ledger& of) noexcept { return of.counts_; }
};

}  // namespace detail
HOCKET_END_NAMESPACE
