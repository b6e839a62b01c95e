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
#include <hocket/observe/registry.hpp>

#include <cstddef>
#include <string>

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

/// Shows the accounts of a ledger in `metrics`, also those that are made later. The ledger may be destroyed first.
///
/// **Threads.** Any, also while the ledger's thread allocates.
inline void watch(registry& metrics, const memory_ledger& ledger) {
  metrics.before_read([&metrics, accounts = hocket::detail::memory_ledger_access::accounts(ledger)] {
    accounts->visit([&](const std::string& name, const hocket::detail::account_bytes& its) {
      const labels of{{"account", hocket::detail::to_utf8(name)}};
      metrics.gauge("hocket_memory_bytes", "bytes that are allocated now", of).set(static_cast<double>(its.now()));
      metrics.gauge("hocket_memory_peak_bytes", "the most bytes that were allocated at a time", of)
          .set(static_cast<double>(its.peak()));
    });
  });
}

}  // namespace observe
HOCKET_END_NAMESPACE
