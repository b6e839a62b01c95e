// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How much memory training keeps, and for what. "It should fit" is a formula; this is the count that the formula is
/// held against: every allocation of gradients, optimizer states and parameters goes through an account of a ledger.
///
/// @code
/// hocket::memory_ledger ledger;
/// auto gradients = hocket::gradients<float>(comm, layout, ..., ledger.account("gradients"));
/// std::printf("%zu bytes now, %zu at most\n", ledger.bytes("gradients"), ledger.peak_bytes());
/// @endcode
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// Counts what is allocated through its accounts, to the byte that was asked for.
///
/// **Threads.** One at a time: each rank has its own. **Lifetime.** Must outlive what was allocated through it.
class memory_ledger {
 public:
  /// Memory comes from `upstream`, which must outlive the ledger.
  explicit memory_ledger(std::pmr::memory_resource* upstream = std::pmr::new_delete_resource()) noexcept
      : upstream_(upstream) {}
  memory_ledger(const memory_ledger&) = delete;
  memory_ledger& operator=(const memory_ledger&) = delete;

  /// The account of that name; a new one at its first mention.
  std::pmr::memory_resource* account(std::string_view name) {
    for (entry& each : accounts_) {
      if (each.name == name) return &each;
    }
    return &accounts_.emplace_back(*this, std::string(name));
  }

  /// Bytes that are allocated now: of all accounts, or of one.
  std::size_t bytes() const noexcept { return total_.now; }
  std::size_t bytes(std::string_view name) const noexcept { return of(name).now; }

  /// The most there ever were at once.
  std::size_t peak_bytes() const noexcept { return total_.peak; }
  std::size_t peak_bytes(std::string_view name) const noexcept { return of(name).peak; }

  /// From now on `peak_bytes` speaks of what comes: to look at one step alone.
  void forget_peaks() noexcept {
    total_.peak = total_.now;
    for (entry& each : accounts_) each.counted.peak = each.counted.now;
  }

 private:
  struct count {
    std::size_t now = 0;
    std::size_t peak = 0;

    void add(std::size_t bytes) noexcept { peak = std::max(peak, now += bytes); }
    void take(std::size_t bytes) noexcept { now -= bytes; }
  };

  struct entry final : std::pmr::memory_resource {
    entry(memory_ledger& of, std::string called) : ledger(of), name(std::move(called)) {}

    void* do_allocate(std::size_t bytes, std::size_t alignment) override {
      void* const memory = ledger.upstream_->allocate(bytes, alignment);
      counted.add(bytes);
      ledger.total_.add(bytes);
      return memory;
    }
    void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
      ledger.upstream_->deallocate(memory, bytes, alignment);
      counted.take(bytes);
      ledger.total_.take(bytes);
    }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

    memory_ledger& ledger;
    std::string name;
    count counted;
  };

  count of(std::string_view name) const noexcept {
    for (const entry& each : accounts_) {
      if (each.name == name) return each.counted;
    }
    return {};
  }

  std::pmr::memory_resource* upstream_;
  count total_;
  std::deque<entry> accounts_;  // never moved: their addresses are given out
};

HOCKET_END_NAMESPACE
