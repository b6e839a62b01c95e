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

#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory_resource>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// Counts the bytes that are requested through its accounts.
///
/// **Threads.** One at a time: each rank needs its own. **Lifetime.** Must outlive all memory allocated through it.
class memory_ledger {
 public:
  /// Memory comes from `upstream`, which must outlive the ledger.
  explicit memory_ledger(std::pmr::memory_resource* upstream = std::pmr::new_delete_resource()) noexcept
      : upstream_(upstream) {}
  memory_ledger(const memory_ledger&) = delete;
  memory_ledger& operator=(const memory_ledger&) = delete;

  /// Returns the account with this name, and creates it on first use.
  std::pmr::memory_resource* account(std::string_view name) {
    for (entry& each : accounts_) {
      if (each.name == name) return &each;
    }
    return &accounts_.emplace_back(*this, std::string(name));
  }

  /// Bytes that are currently allocated: by all accounts, or by one.
  std::size_t bytes() const noexcept { return total_.now; }
  std::size_t bytes(std::string_view name) const noexcept { return of(name).now; }

  /// The highest number of bytes that were allocated at the same time.
  std::size_t peak_bytes() const noexcept { return total_.peak; }
  std::size_t peak_bytes(std::string_view name) const noexcept { return of(name).peak; }

  /// Resets the peaks to the current values, for example to measure a single step.
  void forget_peaks() noexcept {
    total_.peak = total_.now;
    for (entry& each : accounts_) each.counted.peak = each.counted.now;
  }

 private:
  struct count {
    std::size_t now = 0;
    std::size_t peak = 0;

    void add(std::size_t bytes) noexcept { peak = std::max(peak, now += bytes); }
    void subtract(std::size_t bytes) noexcept { now -= bytes; }
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
      counted.subtract(bytes);
      ledger.total_.subtract(bytes);
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
  std::deque<entry> accounts_;  // a deque, because callers hold the addresses of accounts
};

HOCKET_END_NAMESPACE
