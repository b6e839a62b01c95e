// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The log of a rank: one JSON object per line, for `jq` and for programs that collect logs.
///
/// @code
/// hocket::observe::json_lines log("run/rank-0.jsonl", metrics, {.rank = 0});
/// log.start("train_gpt", 3);
/// log.progress(step, steps, {{"loss", loss}});
/// log.write(hocket::observe::level::warning, "slow rank", {{"peer", 2}});
/// log.end("trained", 3);
/// @endcode
///
///     {"time":1764428482.250301,"rank":0,"level":"info","event":"start","job":"train_gpt","nodes":3,"host":"a","process":7}
///     {"time":1764428483.250415,"rank":0,"level":"info","event":"progress","step":10,"steps":100,"loss":2.5,
///      "metrics":{"steps":10,"bytes{peer=\"1\"}":4096,"seconds":{"count":10,"sum":1.5,"buckets":[[0.1,3],["Infinity",7]]}}}
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/platform/output_file.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/registry.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// How important a record is.
enum class level : unsigned char { debug, info, warning, error };

/// A name with a number, a text or a truth value. Numbers that JSON lacks become texts: "NaN", "Infinity".
class field {
 public:
  template <class Value>
    requires(std::integral<Value> || std::floating_point<Value> || std::convertible_to<Value, std::string_view>)
  field(std::string_view name, const Value& value) : name_(name), json_(json_of(value)) {}

  std::string_view name() const noexcept { return name_; }
  const std::string& json() const noexcept { return json_; }

 private:
  template <class Value>
  static std::string json_of(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      return value ? "true" : "false";
    } else if constexpr (std::integral<Value>) {
      return std::to_string(value);
    } else if constexpr (std::floating_point<Value>) {
      return hocket::detail::json_number(static_cast<double>(value));
    } else {
      return hocket::detail::json_text(value);
    }
  }

  std::string_view name_;
  std::string json_;
};

using fields = std::initializer_list<field>;

struct json_lines_options {
  int rank = 0;               ///< of the writer, which each record has
  std::vector<int> ranks{};   ///< the ranks that write: others create no file; empty: all
  level least = level::info;  ///< records of a lower level are not written
};

namespace detail {

inline std::string json_of(const distribution& values, const std::vector<double>& bounds) {
  std::string buckets = "[";
  for (std::size_t i = 0; i < values.counts.size(); ++i) {
    const double bound = i < bounds.size() ? bounds[i] : std::numeric_limits<double>::infinity();
    hocket::detail::append(buckets,
                           {i == 0 ? "[" : ",[", hocket::detail::json_number(bound), ",", values.counts[i], "]"});
  }
  return hocket::detail::json_line()
      .json("count", std::to_string(values.count()))
      .real("sum", values.sum)
      .json("buckets", buckets + ']')
      .object();
}

/// Returns a JSON object with all metrics: a number for each counter and gauge, an object for each histogram.
inline std::string json_of(const snapshot& now) {
  hocket::detail::json_line result;
  for (const family& each : now) {
    for (const sample& one : each.samples) {
      const std::string name = observe::name_of(each.name, one.labels);
      if (each.kind == metric_kind::histogram) {
        result.json(name, json_of(one.values, each.bounds));
      } else {
        result.real(name, one.value);
      }
    }
  }
  return result.object();
}

/// Returns seconds since 1970 with microseconds.
inline std::string json_of(std::chrono::system_clock::time_point at) {
  const double seconds = std::chrono::duration<double>(at.time_since_epoch()).count();
  char digits[64];
  return {digits, std::to_chars(digits, digits + sizeof digits, seconds, std::chars_format::fixed, 6).ptr};
}

}  // namespace detail

/// Appends records to a file. A line is written whole, or not at all, before a call returns.
///
/// **Threads.** Any; a function that the registry calls before it is read must not call this object. Lines are in the
/// order in which their times were taken and their metrics read. **Errors.** `system` if the file can't be written, as on
/// a full disk: the record is lost, and a later call writes again if there is space. `invalid_argument` if a field has a
/// name that the record has already: readers keep one of two values, and differ in which.
class json_lines {
 public:
  /// Opens the file of this rank, and makes its folder. An existing file is continued: a restarted job has one log.
  ///
  /// **Errors.** `system` if the file can't be opened.
  explicit json_lines(const std::string& path, json_lines_options options = {})
      : json_lines(path, nullptr, std::move(options)) {}
  /// Records of progress and of the end have all metrics of `metrics`, which must outlive this object.
  json_lines(const std::string& path, const registry& metrics, json_lines_options options = {})
      : json_lines(path, &metrics, std::move(options)) {}

  /// Writes a record. `event` names what happened.
  void write(level of, std::string_view event, fields with = {}) {
    if (!writes(of)) return;
    const std::scoped_lock lock(mutex_);
    append(begin(of, event), {}, with);
  }

  /// Writes that the job begins, on `nodes` nodes: event "start".
  void start(std::string_view job, int nodes, fields with = {}) {
    if (!writes(level::info)) return;
    const std::scoped_lock lock(mutex_);
    append(begin(level::info, "start")
               .text("job", job)
               .number("nodes", nodes)
               .text("host", platform::host_name())
               .number("process", platform::process_number()),
           {"job", "nodes", "host", "process"}, with);
  }

  /// Writes that `step` of `steps` steps are done, and all metrics: event "progress".
  void progress(std::int64_t step, std::int64_t steps, fields with = {}) {
    if (!writes(level::info)) return;
    const std::scoped_lock lock(mutex_);
    append(begin(level::info, "progress").number("step", step).number("steps", steps), {"step", "steps"}, with,
           metrics_);
  }

  /// Writes that the job has ended, its status, the seconds since this object was made, and all metrics: event "end".
  void end(std::string_view status, int nodes, fields with = {}) {
    if (!writes(level::info)) return;
    const std::scoped_lock lock(mutex_);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin_;
    append(begin(level::info, "end").text("status", status).number("nodes", nodes).real("seconds", passed.count()),
           {"status", "nodes", "seconds"}, with, metrics_);
  }

  /// Writes all metrics: event "metrics".
  void metrics(fields with = {}) {
    if (!writes(level::info)) return;
    const std::scoped_lock lock(mutex_);
    append(begin(level::info, "metrics"), {}, with, metrics_);
  }

 private:
  json_lines(const std::string& path, const registry* metrics, json_lines_options options)
      : options_(std::move(options)), metrics_(metrics) {
    const std::vector<int>& ranks = options_.ranks;
    if (!ranks.empty() && std::find(ranks.begin(), ranks.end(), options_.rank) == ranks.end()) return;
    int error = platform::make_folders(platform::folder_of(path));
    if (error == 0) error = file_.open(path, platform::existing_file::append);
    if (error != 0) {
      raise(platform::system_failure(
          hocket::detail::concat(
              {"cannot open the log '", path, "': name a file in a folder in which this process may create files"}),
          error));
    }
    must_end_line_ = file_.ends_inside_line();
  }

  bool writes(level of) const noexcept { return file_ && of >= options_.least; }

  // The lock is taken before a record gets its time and its metrics: they would be out of order otherwise.

  hocket::detail::json_line begin(level of, std::string_view event) const {
    constexpr const char* names[] = {"debug", "info", "warning", "error"};
    hocket::detail::json_line result;
    result.json("time", detail::json_of(std::chrono::system_clock::now())).number("rank", options_.rank);
    result.text("level", names[static_cast<std::size_t>(of)]).text("event", event);
    return result;
  }

  /// Writes a record with the fields `with`. `names` are those that it has besides those of all records.
  void append(hocket::detail::json_line record, std::initializer_list<std::string_view> names, fields with,
              const registry* metrics = nullptr) {
    std::vector<std::string_view> used{"time", "rank", "level", "event"};
    used.insert(used.end(), names);
    if (metrics != nullptr) used.push_back("metrics");
    for (const field& each : with) {
      if (std::find(used.begin(), used.end(), each.name()) != used.end())
        raise(errc::invalid_argument, hocket::detail::concat({"the log '", file_.path(), "': the record has \"",
                                                              hocket::detail::to_utf8(each.name()),
                                                              "\" already: choose another name for the field"}));
      used.push_back(each.name());
      record.json(each.name(), each.json());
    }
    if (metrics != nullptr) record.json("metrics", detail::json_of(metrics->read()));
    const std::string line = record.object() + '\n';
    if (failure cause = file_.write(must_end_line_ ? '\n' + line : line)) raise(std::move(cause));
    must_end_line_ = false;
  }

  json_lines_options options_;
  const registry* metrics_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::mutex mutex_;
  platform::output_file file_;
  bool must_end_line_ = false;  // a process that was killed, or a loss of power, left part of a line
};

}  // namespace observe
HOCKET_END_NAMESPACE
