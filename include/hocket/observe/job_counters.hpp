// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Steps, restarts and memory of a training as metrics:
///
/// | metric | what it is |
/// |---|---|
/// | `hocket_steps` | steps of the optimizer that this process has taken |
/// | `hocket_restarts` | how often this process has continued from a checkpoint |
/// | `hocket_memory_bytes{account="gradients"}` | bytes that an account of a `memory_ledger` has now |
/// | `hocket_memory_peak_bytes{account="gradients"}` | the most that it has had |
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/memory_ledger.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/observe/followed_counter.hpp>
#include <hocket/observe/registry.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// Counts steps and restarts.
///
/// **Threads.** Any. **Lifetime.** `metrics` must outlive it.
class job_counters {
 public:
  explicit job_counters(registry& metrics)
      : steps_(metrics.counter("hocket_steps", "steps of the optimizer that this process has taken")),
        restarts_(metrics.counter("hocket_restarts", "how often this process has continued from a checkpoint")) {}

  void step() noexcept { steps_.add(); }
  void restart() noexcept { restarts_.add(); }

 private:
  counter& steps_;
  counter& restarts_;
};

namespace detail {

/// The metrics of the accounts of one ledger. Further ledgers add to the same metrics.
class followed_ledger {
  using accounts_type = hocket::detail::ledger_accounts;

 public:
  followed_ledger(registry& metrics, std::shared_ptr<accounts_type> accounts)
      : metrics_(metrics), accounts_(std::move(accounts)) {
    update();
  }

  /// Returns whether the accounts can change later.
  bool update() {
    const bool was_last = accounts_->has_ended();
    std::size_t at = 0;
    accounts_->visit([&](const std::string& name, const hocket::detail::account_bytes& its) {
      if (at == shown_.size()) shown_.push_back(account_of(name));
      shown_[at].now.follow(static_cast<double>(its.now()));
      shown_[at++].peak.follow(static_cast<double>(its.peak()));
    });
    return !was_last;
  }

 private:
  struct account {
    followed_gauge now, peak;
  };

  account account_of(const std::string& name) {
    const labels of{{"account", hocket::detail::to_utf8(name)}};
    return {
        followed_gauge(metrics_.gauge("hocket_memory_bytes", "bytes that are allocated now", of)),
        followed_gauge(metrics_.gauge("hocket_memory_peak_bytes", "the most bytes that were allocated at a time", of))};
  }

  registry& metrics_;
  std::shared_ptr<accounts_type> accounts_;
  std::vector<account> shown_;  ///< in the order of the accounts
};

}  // namespace detail

/// Shows the accounts of a ledger in `metrics`, also those that are made later. The ledger may be destroyed first. Accounts
/// of one name of several ledgers are added up, their peaks as well: watch each ledger once.
///
/// **Threads.** Any, also while the ledger's thread allocates. **Errors.** `invalid_argument` if one of the metrics has
/// another kind, help or other labels: from `watch` if the ledger has accounts, and else from later readings.
inline void watch(registry& metrics, const memory_ledger& ledger) {
  auto accounts = hocket::detail::memory_ledger_access::accounts(ledger);
  metrics.before_read(
      [its = std::make_shared<detail::followed_ledger>(metrics, std::move(accounts))] { return its->update(); });
}

}  // namespace observe
HOCKET_END_NAMESPACE
