// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shows metrics to Prometheus: by an endpoint that Prometheus reads, or in a file for the textfile collector of its node
/// exporter. Needs prometheus-cpp: link `hocket::prometheus`.
///
/// @code
/// hocket::observe::prometheus_endpoint endpoint("0.0.0.0:9400", metrics, {.local_rank = 2});   // http://HOST:9402/metrics
/// hocket::observe::write_textfile("/var/lib/node_exporter/train.prom", metrics);
/// @endcode
///
/// A counter `bytes` has the name `bytes_total` in Prometheus.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/registry.hpp>

#include <prometheus/client_metric.h>
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
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

/// prometheus-cpp writes help texts as they are, but a line break must be escaped.
inline std::string escaped_help(std::string_view help) {
  std::string result;
  for (const char each : help) {
    if (each == '\\') result += "\\\\";
    else if (each == '\n') result += "\\n";
    else result += each;
  }
  return result;
}

/// Returns a metric with its labels, and those of `constant` that it does not have.
inline ::prometheus::ClientMetric with_labels(const labels& own, const labels& constant) {
  ::prometheus::ClientMetric result;
  for (const auto& [name, value] : own) result.label.push_back({name, value});
  for (const auto& [name, value] : constant) {
    const auto has_name = [&](const auto& each) { return each.first == name; };
    if (std::none_of(own.begin(), own.end(), has_name)) result.label.push_back({name, value});
  }
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

/// Registries as prometheus-cpp reads them. Several registries, such as those of ranks that are threads, become one list, in
/// which each name appears once.
///
/// **Threads.** Any.
class prometheus_collectable : public ::prometheus::Collectable {
 public:
  /// Adds a registry, which must outlive this object. All its metrics get the labels `constant`, unless they have labels of
  /// these names.
  ///
  /// **Errors.** `invalid_argument` if a label is not valid, or another registry has the same labels.
  void add(const registry& metrics, labels constant = {}) {
    std::sort(constant.begin(), constant.end());
    std::string problem = detail::problem_with(constant);
    const std::scoped_lock lock(mutex_);
    for (const source& each : sources_) {
      if (problem.empty() && each.constant == constant)
        problem = "another registry has the same labels: add one that distinguishes them, such as {\"rank\", \"1\"}";
    }
    if (!problem.empty()) raise(errc::invalid_argument, "labels of a registry: " + problem);
    sources_.push_back({&metrics, std::move(constant)});
  }

  /// Returns all metrics. Where registries differ in the kind of a name, the first one's metrics are returned.
  std::vector<::prometheus::MetricFamily> Collect() const override {
    const std::scoped_lock lock(mutex_);
    std::map<std::string, ::prometheus::MetricFamily> families;
    for (const source& from : sources_) {
      for (const family& each : from.metrics->read()) {
        const std::string name = each.kind == metric_kind::counter ? each.name + "_total" : each.name;
        const ::prometheus::MetricType type = detail::type_of(each.kind);
        auto& its =
            families.try_emplace(name, ::prometheus::MetricFamily{name, detail::escaped_help(each.help), type, {}})
                .first->second;
        if (its.type == type) add(each, from.constant, its.metric);
      }
    }
    std::vector<::prometheus::MetricFamily> result;
    for (auto& [name, each] : families) result.push_back(std::move(each));
    return result;
  }

 private:
  struct source {
    const registry* metrics;
    labels constant;
  };

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
  const std::string fresh = hocket::detail::concat({path, ".", platform::process_number(), ".new"});
  platform::file_system files;
  platform::file_descriptor opened;
  files.remove(fresh);  // of a process that was killed
  int error = files.open(fresh, platform::file_use::create, opened);
  if (error == 0 && !platform::write_all(opened.get(), std::as_bytes(std::span(text)))) error = errno;
  if (error == 0) error = files.rename(fresh, path);
  if (error == 0) return;
  files.remove(fresh);
  raise(platform::system_failure(hocket::detail::concat({"cannot write metrics to '", path,
                                                         "': name a file in a folder in which this process may "
                                                         "create files"}),
                                 error));
}

struct prometheus_options {
  int local_rank = 0;  ///< is added to the port, so that each rank of a host has its own
  labels constant{};   ///< which all metrics get, such as {{"rank", "3"}}
};

/// An HTTP endpoint, `/metrics`, which one thread of prometheus-cpp serves until this object is destroyed.
///
/// **Threads.** Any.
class prometheus_endpoint {
 public:
  /// Listens at `address`, "HOST:PORT". `metrics` must outlive this object. With port 0, the system chooses a free one.
  ///
  /// **Errors.** `invalid_argument` if the address is not of this form, or the port is beyond 65535; `system` if the port
  /// is in use.
  prometheus_endpoint(std::string_view address, const registry& metrics, prometheus_options options = {})
      : collected_(std::make_shared<prometheus_collectable>()) {
    collected_->add(metrics, std::move(options.constant));
    exposer_ = listen(address_of(address, options.local_rank));
    exposer_->RegisterCollectable(collected_);
  }

  /// Adds the registry of another rank of this process: one endpoint per host with labels {{"rank", "..."}}.
  void add(const registry& metrics, labels constant) { collected_->add(metrics, std::move(constant)); }

  int port() const { return exposer_->GetListeningPorts().at(0); }

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
    constexpr std::size_t threads = 1;
#if HOCKET_HAS_EXCEPTIONS
    try {
      return std::make_unique<::prometheus::Exposer>(address, threads);
    } catch (const std::exception& cause) {
      raise(errc::system,
            hocket::detail::concat({"cannot serve metrics at ", address, ": ", cause.what(),
                                    ". Choose a port that no other program uses, and an address of this host"}));
    }
#else
    return std::make_unique<::prometheus::Exposer>(address, threads);
#endif
  }

  std::shared_ptr<prometheus_collectable> collected_;
  std::unique_ptr<::prometheus::Exposer> exposer_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
