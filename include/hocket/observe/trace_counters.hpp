// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Metrics as tracks of a trace, below the steps of the rank: loss, memory, bytes by collective.
///
/// @code
/// auto seen = hocket::traced(comm);
/// hocket::observe::watch(metrics, seen);
/// hocket::observe::trace_counters tracks(seen, metrics, {"loss", "hocket_collective_bytes"});
/// for (...) { ...; tracks.write(); }
/// hocket::write_trace(seen, "trace.json");
/// @endcode
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/observe/registry.hpp>
#include <hocket/transport/adaptor/traced.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// Writes counters and gauges of this rank into its trace. A metric with labels has a track for each sample, and a
/// histogram none.
///
/// **Threads.** Any. **Lifetime.** `metrics` must outlive it. **Cost.** Some 200 bytes for each value, and the time of
/// a snapshot.
class trace_counters {
 public:
  /// @param names of metrics, which need not exist yet; a metric that never exists has no track
  template <class Domain>
    requires(!transport::keeps_virtual_time<typename Domain::endpoints_type>)
  trace_counters(const communicator<adaptor::traced<Domain>>& comm, const registry& metrics,
                 std::vector<std::string> names)
      : log_(hocket::detail::communicator_access::state(comm).domain()->shared()), metrics_(metrics),
        names_(std::move(names)) {}

  /// Adds the present values.
  void write() {
    const double now = adaptor::trace_log::now();
    for (const family& each : metrics_.read()) {
      if (each.kind == metric_kind::histogram || std::find(names_.begin(), names_.end(), each.name) == names_.end())
        continue;
      for (const sample& one : each.samples) log_->add_counter(name_of(each.name, one.labels), now, one.value);
    }
  }

 private:
  const std::shared_ptr<adaptor::trace_log> log_;
  const registry& metrics_;
  const std::vector<std::string> names_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
