// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The metrics of a program: each has a name, a text that explains it, and may have labels. Parts of the program update
/// them; sinks, such as a log or TensorBoard, read all of them.
///
/// @code
/// hocket::observe::registry metrics;
/// auto& loss = metrics.gauge("loss", "training loss, in nats per byte");
/// auto& steps = metrics.counter("steps", "steps of the optimizer");
/// loss.set(2.5);
/// steps.add();
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/observe/metric.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {
class followed_counter;
}

/// Names and values that distinguish the metrics of one name: {{"peer", "3"}}.
using labels = std::vector<std::pair<std::string, std::string>>;

enum class metric_kind : unsigned char { counter, gauge, histogram };

/// One metric at the time of a snapshot.
struct sample {
  observe::labels labels;  ///< sorted by name
  double value = 0;        ///< of a counter or a gauge
  distribution values;     ///< of a histogram
};

/// The metrics of one name at the time of a snapshot.
struct family {
  std::string name;
  std::string help;
  metric_kind kind = metric_kind::counter;
  std::vector<double> bounds;   ///< of a histogram
  std::vector<sample> samples;  ///< sorted by labels
};

/// All metrics of a registry, sorted by name.
using snapshot = std::vector<family>;

namespace detail {

/// Returns a text of one line: a backslash precedes backslashes and each `mark`, and a line break becomes "\n".
inline std::string escaped(std::string_view text, char mark) {
  std::string result;
  for (const char each : text) {
    if (each == '\\' || each == mark) result += '\\';
    if (each == '\n') result += "\\n";
    else result += each;
  }
  return result;
}

}  // namespace detail

/// Returns how texts name a metric, as Prometheus writes it: `bytes`, or `bytes{peer="3"}`. In values, a backslash
/// precedes quotes and backslashes, so that no two metrics of a registry have the same name.
inline std::string name_of(std::string_view name, const labels& of) {
  std::string result(name);
  for (const auto& [label, value] : of) {
    hocket::detail::append(result,
                           {result.size() == name.size() ? "{" : ",", label, "=\"", detail::escaped(value, '"'), '"'});
  }
  return of.empty() ? result : result + '}';
}

namespace detail {

/// Returns whether `name` consists of letters, digits and `_`, and does not begin with a digit.
inline bool is_identifier(std::string_view name) noexcept {
  const auto may_begin = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && may_begin(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return may_begin(c) || (c >= '0' && c <= '9'); });
}

inline const char* name_of(metric_kind kind) noexcept {
  constexpr const char* names[] = {"counter", "gauge", "histogram"};
  return names[static_cast<std::size_t>(kind)];
}

/// Returns why a metric can't have this name and help; empty if it can.
HOCKET_COLD inline std::string problem_with(std::string_view name, std::string_view help) {
  if (!is_identifier(name)) return "a name consists of letters, digits and \"_\", and does not begin with a digit";
  for (const std::string_view ending : {"_total", "_bucket", "_count", "_sum"}) {
    if (name.ends_with(ending))
      return hocket::detail::concat({"a name does not end in \"", ending, "\", which Prometheus adds to names"});
  }
  if (help.empty()) return "the help text is empty: it states what the number is, and its unit";
  if (!hocket::detail::is_utf8(help)) return "the help text is not valid UTF-8";
  return {};
}

/// Returns why a metric can't have these labels, which are sorted; empty if it can.
HOCKET_COLD inline std::string problem_with(const labels& sorted) {
  const std::string* before = nullptr;
  for (const auto& [name, value] : sorted) {
    if (!is_identifier(name) || name.starts_with("__"))
      return hocket::detail::concat(
          {"the label \"", hocket::detail::to_utf8(name),
           "\": a name consists of letters, digits and \"_\", and begins neither with a digit "
           "nor with \"__\""});
    if (name == "le") return "the label \"le\" is that of a histogram's buckets: choose another name";
    if (before != nullptr && *before == name)
      return hocket::detail::concat({"the label \"", name, "\" appears twice: each has one value"});
    if (!hocket::detail::is_utf8(value))
      return hocket::detail::concat({"the value of the label \"", name, "\" is not valid UTF-8"});
    before = &name;
  }
  return {};
}

/// Returns why a histogram can't have these bounds; empty if it can.
HOCKET_COLD inline std::string problem_with(const std::vector<double>& bounds) {
  if (bounds.empty()) return "there are no bounds: a histogram needs at least one";
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (!hocket::detail::is_finite(bounds[i]))
      return hocket::detail::concat({"bound ", i, " is not finite; the bucket of greater values is added to those"});
    if (i > 0 && !(bounds[i] > bounds[i - 1]))
      return hocket::detail::concat({"bound ", i, " is not greater than bound ", i - 1, ": bounds must increase"});
  }
  return {};
}

}  // namespace detail

/// Owns metrics. A metric lives as long as the registry.
///
/// **Threads.** All functions may be called by any thread at any time. They take a lock; updates of metrics take none.
class registry {
 public:
  registry() = default;
  registry(const registry&) = delete;
  registry& operator=(const registry&) = delete;

  /// Returns the counter of this name and these labels, and creates it on first use. The same holds for the others.
  ///
  /// **Cost.** A search by name: keep the reference, which stays valid. A counter has 1.4 KiB, a histogram of 20
  /// buckets 4 KiB, and a gauge 0.4 KiB. **Errors.** `invalid_argument` if a name, a label, or a bound is not valid, and
  /// if metrics of one name differ in kind, help, names of labels, or bounds.
  observe::counter& counter(std::string_view name, std::string_view help, labels of = {}) {
    stored_counter& found = find<stored_counter>(metric_kind::counter, name, help, {}, std::move(of));
    const std::scoped_lock lock(mutex_);
    if (!found.updated) found.updated = std::make_unique<observe::counter>();
    return *found.updated;
  }
  observe::gauge& gauge(std::string_view name, std::string_view help, labels of = {}) {
    return find<observe::gauge>(metric_kind::gauge, name, help, {}, std::move(of));
  }
  /// `bounds` are the greatest values of the buckets, and increase; a last bucket without a bound is added.
  observe::histogram& histogram(std::string_view name, std::string_view help, std::vector<double> bounds,
                                labels of = {}) {
    return find<observe::histogram>(metric_kind::histogram, name, help, std::move(bounds), std::move(of));
  }

  /// Calls `update()` at the begin of each later `read`, in the thread that reads, one call at a time: it sets metrics
  /// to what is counted elsewhere. If it returns false, it is not called again. It must not call `read` or `before_read`.
  template <class Update>
    requires std::is_invocable_v<Update&>
  void before_read(Update update) {
    const std::scoped_lock lock(updates_mutex_);
    if constexpr (std::is_same_v<std::invoke_result_t<Update&>, bool>) {
      updates_.emplace_back(std::move(update));
    } else {
      updates_.emplace_back([update = std::move(update)]() mutable { return update(), true; });
    }
  }

  /// Returns the values of all metrics now.
  ///
  /// **Errors.** Those of the functions of `before_read`, after which the others are called by the next `read`.
  snapshot read() const {
    update();
    const std::scoped_lock lock(mutex_);
    snapshot result;
    for (const auto& [name, its] : families_) {
      family& each = result.emplace_back(family{name, its.help, its.kind, its.bounds, {}});
      for (const auto& [of, metric] : its.metrics) each.samples.push_back(sample_of(of, metric));
    }
    return result;
  }

 private:
  friend class detail::followed_counter;

  /// What is counted elsewhere needs no cell for each thread, so it has none until the program asks for the counter.
  struct stored_counter {
    std::atomic<double> followed{0};
    std::unique_ptr<observe::counter> updated;

    double value() const noexcept {
      return followed.load(std::memory_order_relaxed) + (updated ? updated->value() : 0);
    }
  };
  using any_metric = std::variant<stored_counter, observe::gauge, observe::histogram>;

  struct stored_family {
    std::string help;
    metric_kind kind;
    std::vector<double> bounds;
    std::map<labels, any_metric> metrics;
  };

  template <class Metric>
  Metric& find(metric_kind kind, std::string_view name, std::string_view help, std::vector<double> bounds, labels of) {
    std::sort(of.begin(), of.end());
    const std::scoped_lock lock(mutex_);
    std::string problem = problem_with(kind, name, help, bounds, of);
    if (!problem.empty()) {
      raise(errc::invalid_argument,
            hocket::detail::concat({detail::name_of(kind), " \"", hocket::detail::to_utf8(name), "\": ", problem}));
    }
    auto its = families_.find(name);
    if (its == families_.end())
      its = families_.try_emplace(std::string(name), stored_family{std::string(help), kind, bounds, {}}).first;
    auto& metrics = its->second.metrics;
    if constexpr (std::is_same_v<Metric, observe::histogram>) {
      auto& metric = metrics.try_emplace(std::move(of), std::in_place_type<Metric>, std::move(bounds)).first->second;
      return *std::get_if<Metric>(&metric);
    } else {
      return *std::get_if<Metric>(&metrics.try_emplace(std::move(of), std::in_place_type<Metric>).first->second);
    }
  }

  /// Returns why there can't be such a metric; empty if there can.
  HOCKET_COLD std::string problem_with(metric_kind kind, std::string_view name, std::string_view help,
                                       const std::vector<double>& bounds, const labels& of) const {
    std::string problem = detail::problem_with(name, help);
    if (problem.empty()) problem = detail::problem_with(of);
    if (problem.empty() && kind == metric_kind::histogram) problem = detail::problem_with(bounds);
    const auto found = families_.find(name);
    if (!problem.empty() || found == families_.end()) return problem;
    const stored_family& known = found->second;
    if (known.kind != kind)
      return hocket::detail::concat({"the name belongs to a ", detail::name_of(known.kind), ": choose another one"});
    if (known.help != help)
      return hocket::detail::concat({"its help text differs from the first one, \"", known.help, '"'});
    if (known.bounds != bounds) return "its bounds differ from those of the first histogram of this name";
    if (!has_names_of(of, known.metrics.begin()->first))
      return hocket::detail::concat(
          {"its labels differ in name from those of ", observe::name_of(name, known.metrics.begin()->first)});
    return {};
  }

  static bool has_names_of(const labels& one, const labels& other) noexcept {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [](const auto& a, const auto& b) { return a.first == b.first; });
  }

  static sample sample_of(const labels& of, const any_metric& metric) {
    sample result{of, 0, {}};
    if (const auto* const one = std::get_if<stored_counter>(&metric)) result.value = one->value();
    if (const auto* const one = std::get_if<observe::gauge>(&metric)) result.value = one->value();
    if (const auto* const one = std::get_if<observe::histogram>(&metric)) result.values = one->value();
    return result;
  }

  void update() const {
    const std::scoped_lock lock(updates_mutex_);
    for (std::size_t i = 0; i < updates_.size();) {
      if (updates_[i]()) ++i;
      else updates_.erase(updates_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  mutable std::mutex updates_mutex_;  // locked before the other one
  mutable std::vector<std::function<bool()>> updates_;
  mutable std::mutex mutex_;
  std::map<std::string, stored_family, std::less<>> families_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
