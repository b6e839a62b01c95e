// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What this process uses of its host, as metrics:
///
/// | metric | what it is |
/// |---|---|
/// | `process_cpu_seconds` | processor time of all threads |
/// | `process_resident_memory_bytes` | memory of the process that is in RAM |
/// | `process_page_faults{kind="minor"}`, `{kind="major"}` | page faults without and with reading from storage |
/// | `process_disk_read_bytes`, `process_disk_written_bytes` | bytes that storage has transferred for the process |
/// | `network_received_bytes{interface="eth0"}`, `network_sent_bytes{...}` | bytes of the interfaces that the process sees |
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/process_usage.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/observe/followed_counter.hpp>
#include <hocket/observe/registry.hpp>

#include <map>
#include <mutex>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace observe {
/// Adds these metrics to a registry. There should be one for each process.
///
/// **Threads.** Any. **Cost.** `update` reads three files in /proc: some 40 microseconds.
class resources {
 public:
  /// `metrics` must outlive this object.
  explicit resources(registry& metrics)
      : metrics_(metrics),
        cpu_(metrics, "process_cpu_seconds", "processor time of all threads of the process, in seconds"),
        resident_(metrics.gauge("process_resident_memory_bytes", "memory of the process that is in RAM, in bytes")),
        minor_(metrics, faults, faults_help, {{"kind", "minor"}}),
        major_(metrics, faults, faults_help, {{"kind", "major"}}),
        read_(metrics, "process_disk_read_bytes", "bytes that storage has read for the process"),
        written_(metrics, "process_disk_written_bytes", "bytes that storage has written for the process") {
    update();
  }

  /// Reads the present values. What this process may not read keeps its value.
  void update() {
    const platform::process_usage now = platform::usage_of_this_process();
    const auto interfaces = platform::usage_of_interfaces();
    const std::scoped_lock lock(mutex_);
    cpu_.follow(now.processor_seconds);
    if (now.resident_bytes) resident_.set(static_cast<double>(*now.resident_bytes));
    minor_.follow(now.minor_faults);
    major_.follow(now.major_faults);
    read_.follow(now.read_bytes);
    written_.follow(now.written_bytes);
    for (const platform::interface_usage& each : interfaces) {
      const std::string name = hocket::detail::to_utf8(each.name);
      received_
          .try_emplace(name, metrics_, "network_received_bytes", "bytes that a network interface has received",
                       labels{{"interface", name}})
          .first->second.follow(each.received_bytes);
      sent_
          .try_emplace(name, metrics_, "network_sent_bytes", "bytes that a network interface has sent",
                       labels{{"interface", name}})
          .first->second.follow(each.sent_bytes);
    }
  }

 private:
  static constexpr const char* faults = "process_page_faults";
  static constexpr const char* faults_help = "page faults: minor without, major with reading from storage";

  std::mutex mutex_;
  registry& metrics_;
  detail::followed_counter cpu_;
  gauge& resident_;
  detail::followed_counter minor_, major_, read_, written_;
  std::map<std::string, detail::followed_counter> received_, sent_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
