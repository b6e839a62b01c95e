// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shows metrics to Prometheus: by an endpoint that Prometheus reads, or in a file for the textfile collector of its
/// node exporter. Needs prometheus-cpp: link `hocket::prometheus`.
///
/// @code
/// hocket::observe::prometheus_endpoint endpoint("0.0.0.0:9400", metrics, {.local_rank = 2});   // http://HOST:9402/metrics
/// hocket::observe::prometheus_endpoint one("0.0.0.0:9400", metrics,                 // for all processes of the host
///                                          {.local_rank = 2, .constant = {{"rank", "2"}}, .folder = "/dev/shm/my_job"});
/// hocket::observe::write_textfile("/var/lib/node_exporter/train.prom", metrics);
/// @endcode
///
/// A counter `bytes` has the name `bytes_total` in Prometheus.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/metrics_folder.hpp>
#include <hocket/observe/registry.hpp>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

/// Returns a metric with its labels, and those of `constant`, which distinguish registries. A label of the metric that
/// has the name of one of these gets "exported_" before its name, as Prometheus renames it by default.
inline ::prometheus::ClientMetric with_labels(const labels& own, const labels& constant) {
  ::prometheus::ClientMetric result;
  const auto has = [](const labels& in, const std::string& name) {
    return std::any_of(in.begin(), in.end(), [&](const auto& each) { return each.first == name; });
  };
  for (const auto& [name, value] : own) {
    std::string shown = name;
    while (has(constant, shown) || (shown != name && has(own, shown))) shown.insert(0, "exported_");
    result.label.push_back({shown, value});
  }
  for (const auto& [name, value] : constant) result.label.push_back({name, value});
  return result;
}

inline ::prometheus::ClientMetric::Histogram histogram_of(const distribution& values,
                                                          const std::vector<double>& bounds) {
  ::prometheus::ClientMetric::Histogram result;
  result.sample_sum = values.sum;
  for (std::size_t i = 0; i < values.counts.size(); ++i) {
    result.sample_count += values.counts[i];
    result.bucket.push_back(
        {result.sample_count, i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity()});
  }
  return result;
}

inline ::prometheus::MetricType type_of(metric_kind kind) noexcept {
  switch (kind) {
    case metric_kind::counter: return ::prometheus::MetricType::Counter;
    case metric_kind::gauge: return ::prometheus::MetricType::Gauge;
    case metric_kind::histogram: return ::prometheus::MetricType::Histogram;
  }
  return ::prometheus::MetricType::Untyped;
}

}  // namespace detail

/// Registries as prometheus-cpp reads them. Several registries, such as those of ranks that are threads, become one
/// list, in which each name appears once.
///
/// **Threads.** Any.
class prometheus_collectable : public ::prometheus::Collectable {
 public:
  /// Adds a registry, which must outlive this object. All its metrics get the labels `constant`; a label of a metric
  /// that has the name of one of them becomes "exported_" and its name.
  ///
  /// **Errors.** `invalid_argument` if a label is not valid, or another registry has the same labels.
  void add(const registry& metrics, labels constant = {}) {
    constant = detail::checked_constant(std::move(constant));
    const std::scoped_lock lock(mutex_);
    if (has_labels(constant))
      raise(errc::invalid_argument,
            "labels of a registry: another registry has the same labels: add one that distinguishes them, such as "
            "{\"rank\", \"1\"}");
    sources_.push_back({&metrics, std::move(constant)});
  }

  /// Adds the ranks that write to a folder by a `metrics_writer`, except those that have the labels of a registry.
  void add_folder(std::string folder) {
    const std::scoped_lock lock(mutex_);
    folders_.push_back(std::move(folder));
  }

  /// Returns all metrics. Where registries differ in the kind of a name, the first one's metrics are returned. A registry
  /// that can't be read, because a function of its `before_read` raises an error, is left out.
  std::vector<::prometheus::MetricFamily> Collect() const override {
    const std::scoped_lock lock(mutex_);
    families all;
    for (const source& from : sources_) {
      if (const auto now = detail::read_if_possible(*from.metrics)) add(*now, from.constant, all);
    }
    for (const std::string& folder : folders_) {
      for (const rank_metrics& from : read_metrics_folder(folder)) {
        if (!has_labels(from.constant)) add(from.metrics, from.constant, all);
      }
    }
    std::vector<::prometheus::MetricFamily> result;
    for (auto& [name, each] : all) result.push_back(std::move(each));
    return result;
  }

 private:
  struct source {
    const registry* metrics;
    labels constant;
  };
  using families = std::map<std::string, ::prometheus::MetricFamily>;

  bool has_labels(const labels& constant) const noexcept {
    return std::any_of(sources_.begin(), sources_.end(), [&](const source& each) { return each.constant == constant; });
  }

  static void add(const snapshot& from, const labels& constant, families& to) {
    for (const family& each : from) {
      const std::string name = each.kind == metric_kind::counter ? each.name + "_total" : each.name;
      const ::prometheus::MetricType type = detail::type_of(each.kind);
      const std::string help = detail::escaped(each.help, '\\');  // prometheus-cpp writes it as it is
      auto& its = to.try_emplace(name, ::prometheus::MetricFamily{name, help, type, {}}).first->second;
      if (its.type == type) add(each, constant, its.metric);
    }
  }

  static void add(const family& from, const labels& constant, std::vector<::prometheus::ClientMetric>& to) {
    for (const sample& one : from.samples) {
      ::prometheus::ClientMetric& metric = to.emplace_back(detail::with_labels(one.labels, constant));
      if (from.kind == metric_kind::counter) metric.counter.value = one.value;
      if (from.kind == metric_kind::gauge) metric.gauge.value = one.value;
      if (from.kind == metric_kind::histogram) metric.histogram = detail::histogram_of(one.values, from.bounds);
    }
  }

  mutable std::mutex mutex_;
  std::vector<source> sources_;
  std::vector<std::string> folders_;
};

/// Returns metrics in the text format of Prometheus, version 0.0.4.
inline std::string prometheus_text(const prometheus_collectable& metrics) {
  std::ostringstream text;
  ::prometheus::TextSerializer().Serialize(text, metrics.Collect());
  return std::move(text).str();
}

/// Writes the metrics to the file `path`, whose name should end in ".prom", at once: a reader never sees part of them.
/// Ranks of a host need a file each, and labels that distinguish them.
///
/// **Errors.** `system` if the file can't be written.
inline void write_textfile(const std::string& path, const registry& metrics, labels constant = {}) {
  prometheus_collectable all;
  all.add(metrics, std::move(constant));
  const std::string text = prometheus_text(all);
  platform::file_system files;
  const int error = platform::replace_file(files, path, std::as_bytes(std::span(text)));
  if (error == 0) return;
  raise(platform::system_failure(hocket::detail::concat({"cannot write metrics to '", path,
                                                         "': name a file in a folder in which this process may "
                                                         "create files"}),
                                 error));
}

struct prometheus_options {
  int local_rank = 0;  ///< is added to the port, so that each rank of a host has its own
  labels constant{};   ///< which all metrics get, such as {{"rank", "3"}}
  /// If set, all processes of a host share one endpoint: that of local rank 0, at the port without an addition. The
  /// others write their metrics to this folder of the host, one for each job.
  std::string folder{};
};

/// An HTTP endpoint, `/metrics`, which two threads of prometheus-cpp serve until this object is destroyed. A client that
/// sends no request is disconnected after two seconds.
///
/// With `prometheus_options::folder`, local rank 0 serves the metrics of all processes of the host that pass equal
/// address and folder, and `constant` labels that distinguish them. Those of others are a second old at most; those of
/// a process that has died or is stopped disappear within 5 s. While local rank 0 does not run, there is no endpoint.
///
/// **Threads.** Any.
class prometheus_endpoint {
 public:
  /// Listens at `address`, "HOST:PORT". `metrics` must outlive this object. With port 0, the system chooses a free one.
  ///
  /// **Errors.** `invalid_argument` if the address is not of this form, the port is beyond 65535, or a folder is set
  /// without labels; `system` if the port is in use, or the folder can't be written to.
  prometheus_endpoint(std::string_view address, const registry& metrics, prometheus_options options = {})
      : collected_(std::make_shared<prometheus_collectable>()) {
    const bool is_shared = !options.folder.empty();
    if (is_shared && options.constant.empty()) {
      raise(errc::invalid_argument, hocket::detail::concat({"processes that share the endpoint ", address,
                                                            " need constant labels that distinguish them, such as "
                                                            "{\"rank\", \"1\"}"}));
    }
    const std::string own_address =
        address_of(address, is_shared ? std::min(options.local_rank, 0) : options.local_rank);
    collected_->add(metrics, options.constant);
    if (is_shared && options.local_rank > 0) {
      writer_.emplace(options.folder, options.local_rank, metrics, std::move(options.constant));
      return;
    }
    if (is_shared) collected_->add_folder(std::move(options.folder));
    exposer_ = listen(own_address);
    exposer_->RegisterCollectable(collected_);
  }

  /// Adds the registry of another rank of this process, with labels such as {{"rank", "..."}}. Only a process that
  /// serves shows it.
  void add(const registry& metrics, labels constant) { collected_->add(metrics, std::move(constant)); }

  /// Returns the port at which this process serves; 0 if another one serves its metrics.
  int port() const { return exposer_ ? exposer_->GetListeningPorts().at(0) : 0; }

 private:
  static std::string address_of(std::string_view address, int local_rank) {
    const std::size_t colon = address.rfind(':');
    const std::string_view digits = colon == address.npos ? "" : address.substr(colon + 1);
    int port = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size() || port < 0 || port > 65535 || local_rank < 0) {
      raise(
          errc::invalid_argument,
          hocket::detail::concat({"the address \"", hocket::detail::to_utf8(address), "\" with local rank ", local_rank,
                                  ": write HOST:PORT, such as \"0.0.0.0:9400\", with a port from 0 to 65535"}));
    }
    if (port == 0) return std::string(address);
    if (port > 65535 - local_rank) {
      raise(errc::invalid_argument, hocket::detail::concat({"port ", port, " plus local rank ", local_rank,
                                                            " exceeds 65535: choose a lower port"}));
    }
    return hocket::detail::concat({address.substr(0, colon + 1), port + local_rank});
  }

  static std::unique_ptr<::prometheus::Exposer> listen(const std::string& address) {
    // A thread waits for the request of its client: by default for 30 s, in which Prometheus gets no answer.
    const std::vector<std::string> how{"listening_ports", address, "num_threads", "2", "request_timeout_ms", "2000"};
#if HOCKET_HAS_EXCEPTIONS
    try {
      return std::make_unique<::prometheus::Exposer>(how);
    } catch (const std::exception& cause) {
      raise(errc::system,
            hocket::detail::concat({"cannot serve metrics at ", address, ": ", cause.what(),
                                    ". Choose a port that no other program uses, and an address of this host"}));
    }
#else
    return std::make_unique<::prometheus::Exposer>(how);
#endif
  }

  std::shared_ptr<prometheus_collectable> collected_;
  std::unique_ptr<::prometheus::Exposer> exposer_;
  std::optional<metrics_writer> writer_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
