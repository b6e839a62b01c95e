// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shows a training in TensorBoard: all metrics of a registry, and scalars, histograms, texts and images of the caller.
///
/// @code
/// hocket::observe::tensorboard board("runs/a", metrics);
/// board.restart(taken + 1);               // after `taken` steps: those of a checkpoint, or none
/// board.write(step);                      // all metrics, after each step, or after each hundredth
/// board.histogram(step, "weights", weights);
/// board.drawing(0, "schedule", hocket::plan::pipeline::draw_text(schedule));
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/utf8.hpp>
#include <hocket/observe/event_file.hpp>
#include <hocket/observe/registry.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

/// What a histogram of TensorBoard has.
struct value_summary {
  double least = 0, greatest = 0, count = 0, sum = 0, sum_of_squares = 0;
  std::vector<double> limits;  ///< the greatest value of each bucket
  std::vector<double> counts;

  protobuf encoded() const {
    protobuf result;
    result.real(1, least).real(2, greatest).real(3, count).real(4, sum).real(5, sum_of_squares);
    return result.reals(6, limits).reals(7, counts);
  }
};

/// Returns buckets of equal width for the finite ones of `values`.
template <class Number>
value_summary summary_of(std::span<const Number> values) {
  constexpr std::size_t buckets = 30;
  value_summary result;
  result.least = std::numeric_limits<double>::max();
  result.greatest = -result.least;
  const auto for_each_finite = [&](auto act) {
    for (const Number each : values) {
      const auto value = static_cast<double>(each);
      if (hocket::detail::is_finite(value)) act(value);
    }
  };
  for_each_finite([&](double value) {
    result.least = std::min(result.least, value);
    result.greatest = std::max(result.greatest, value);
    result.count += 1;
    result.sum += value;
    result.sum_of_squares += value * value;
  });
  if (result.count == 0) return {};
  // Halves, because the difference of two finite numbers may be infinite.
  const double half_width = result.greatest / 2 - result.least / 2;
  for (std::size_t i = 1; i < buckets; ++i)
    result.limits.push_back(result.least + 2 * (half_width * (static_cast<double>(i) / buckets)));
  result.limits.push_back(result.greatest);
  result.counts.resize(buckets);
  for_each_finite([&](double value) {
    const double at = half_width > 0 ? (value / 2 - result.least / 2) / half_width * buckets : 0;
    result.counts[std::min(static_cast<std::size_t>(at), buckets - 1)] += 1;
  });
  return result;
}

/// Returns the values of a histogram that were counted after `before`, which is empty at first. A histogram does not
/// know its least and its greatest value: the first bucket is drawn from 0, if its bound is positive, and else as wide
/// as the second; the last one as wide as the one before.
inline value_summary summary_of(const distribution& now, const distribution& before,
                                const std::vector<double>& bounds) {
  value_summary result;
  const std::size_t last = bounds.size() - 1;
  const auto width = [&](std::size_t i) {
    return i == 0 ? (last > 0 ? bounds[1] - bounds[0] : 1) : bounds[i] - bounds[i - 1];
  };
  const auto lower = [&](std::size_t i) { return i > 0 ? bounds[i - 1] : bounds[0] > 0 ? 0 : bounds[0] - width(0); };
  const auto upper = [&](std::size_t i) { return i <= last ? bounds[i] : bounds[last] + width(last); };
  std::vector<double> counts(now.counts.size());
  std::size_t begin = counts.size(), end = 0;  // of the buckets that are not empty: readers use `least` for the first
  for (std::size_t i = 0; i < counts.size(); ++i) {
    counts[i] = static_cast<double>(now.counts[i] - (before.counts.empty() ? 0 : before.counts[i]));
    if (counts[i] == 0) continue;
    begin = std::min(begin, i);
    end = i + 1;
  }
  for (std::size_t i = begin; i < end; ++i) {
    const double middle = lower(i) / 2 + upper(i) / 2;
    result.limits.push_back(upper(i));
    result.counts.push_back(counts[i]);
    result.count += counts[i];
    result.sum_of_squares += counts[i] * middle * middle;
  }
  if (end == 0) return result;
  result.least = lower(begin);
  result.greatest = upper(end - 1);
  result.sum = now.sum - before.sum;
  return result;
}

}  // namespace detail

/// Returns the tag of a metric, by which TensorBoard groups: `bytes`, or `bytes/peer=3`. In values, a backslash precedes
/// commas and backslashes, so that no two metrics of a registry have the same tag.
inline std::string tag_of(std::string_view name, const labels& of) {
  std::string result(name);
  for (const auto& [label, value] : of)
    hocket::detail::append(result, {result.size() == name.size() ? "/" : ",", label, "=", detail::escaped(value, ',')});
  return result;
}

/// Writes a new file of events into a folder, which is a run in TensorBoard. Of the ranks of a job, one writes, or each
/// has a folder of its own. Each event is in the file when the call returns.
///
/// **Threads.** Any; a function that the registry calls before it is read must not call this object. **Errors.**
/// `system` if the file can't be written, as on a full disk: the event is lost, and a later call writes again if there
/// is space. Values of the registry's histograms are not lost, but are part of the next event.
class tensorboard {
 public:
  /// Makes the folder and a file.
  ///
  /// **Errors.** `system` if they can't be created.
  explicit tensorboard(const std::string& folder) : file_(folder) {}
  /// `metrics` must outlive this object.
  tensorboard(const std::string& folder, const registry& metrics) : file_(folder), metrics_(&metrics) {}

  /// Writes all metrics of the registry: of a histogram, the values that were recorded since the last call.
  void write(std::int64_t step) {
    if (metrics_ == nullptr) return;
    const std::scoped_lock lock(mutex_);
    const snapshot now = metrics_->read();  // locked, so that no thread subtracts newer counts from older ones
    detail::protobuf summary;
    std::map<std::string, distribution> written;
    for (const family& each : now) {
      for (const sample& one : each.samples) {
        const std::string tag = tag_of(each.name, one.labels);
        if (each.kind == metric_kind::histogram) {
          const detail::value_summary values = detail::summary_of(one.values, written_[tag], each.bounds);
          written.insert_or_assign(tag, one.values);
          if (values.count > 0) summary.message(1, histogram_value(tag, values, each.help));
        } else {
          summary.message(1, scalar_value(tag, one.value, each.help));
        }
      }
    }
    append_summary(step, summary);
    for (auto& [tag, values] : written) written_[tag] = std::move(values);
  }

  /// Writes a number, which TensorBoard rounds to 24 bits.
  void scalar(std::int64_t step, std::string_view tag, double value) {
    const std::scoped_lock lock(mutex_);
    append(step, scalar_value(tag, value));
  }

  /// Writes the distribution of the finite ones of `values`, in 30 buckets; nothing if there are none.
  void histogram(std::int64_t step, std::string_view tag, std::span<const float> values) {
    write_summary(step, tag, detail::summary_of(values));
  }
  void histogram(std::int64_t step, std::string_view tag, std::span<const double> values) {
    write_summary(step, tag, detail::summary_of(values));
  }

  /// Writes a text in Markdown.
  void text(std::int64_t step, std::string_view tag, std::string_view markdown) {
    const std::scoped_lock lock(mutex_);
    detail::protobuf value = begin_value(tag, "text", {}, of_tensors);
    constexpr int strings = 7;
    value.message(8, detail::protobuf()
                         .integer(1, strings)
                         .message(2, detail::protobuf())
                         .text(8, hocket::detail::to_utf8(markdown)));
    append(step, value);
  }

  /// Writes a text whose columns are aligned, such as the drawing of a schedule by draw/schedule_text.hpp.
  void drawing(std::int64_t step, std::string_view tag, std::string_view lines) {
    std::string markdown = "    ";  // what makes a line of Markdown a line of code
    for (const char each : lines) {
      markdown += each;
      if (each == '\n') markdown += "    ";
    }
    text(step, tag, markdown);
  }

  /// Writes an image. `encoded` is a file of type PNG, JPEG, GIF or BMP: TensorBoard shows no others.
  void image(std::int64_t step, std::string_view tag, int width, int height, std::string_view encoded) {
    const std::scoped_lock lock(mutex_);
    detail::protobuf value = begin_value(tag, "images", {}, of_blobs);
    constexpr int with_colours = 3;
    value.message(4, detail::protobuf().integer(1, height).integer(2, width).integer(3, with_colours).text(4, encoded));
    append(step, value);
  }

  /// States that `step` is the next one that the training writes, after it was restarted or went back: readers drop
  /// what earlier events of this folder say about this step and later ones, so that they show each step once. After a
  /// checkpoint of n steps, that is n + 1.
  void restart(std::int64_t step) {
    const std::scoped_lock lock(mutex_);
    constexpr int start = 1;
    file_.append(detail::protobuf().message(7, detail::protobuf().integer(1, start)), step);
  }

  const std::string& path() const noexcept { return file_.path(); }  ///< of the file

 private:
  enum data_class { of_scalars = 1, of_tensors, of_blobs };

  /// Begins a value. The first of each tag describes it.
  detail::protobuf begin_value(std::string_view tag, std::string_view plugin, std::string_view help, data_class kind) {
    detail::protobuf result;
    const std::string valid = hocket::detail::to_utf8(tag);
    result.text(1, valid);
    if (!described_.contains(valid) && described_now_.insert(valid).second) {
      detail::protobuf metadata;
      metadata.message(1, detail::protobuf().text(1, plugin));
      if (!help.empty()) metadata.text(3, help);
      result.message(9, metadata.integer(4, kind));
    }
    return result;
  }

  detail::protobuf scalar_value(std::string_view tag, double value, std::string_view help = {}) {
    return begin_value(tag, "scalars", help, of_scalars).real(2, static_cast<float>(value));
  }

  detail::protobuf histogram_value(std::string_view tag, const detail::value_summary& values,
                                   std::string_view help = {}) {
    return begin_value(tag, "histograms", help, of_tensors).message(5, values.encoded());
  }

  void write_summary(std::int64_t step, std::string_view tag, const detail::value_summary& values) {
    if (values.count == 0) return;
    const std::scoped_lock lock(mutex_);
    append(step, histogram_value(tag, values));
  }

  void append(std::int64_t step, const detail::protobuf& value) {
    append_summary(step, detail::protobuf().message(1, value));
  }

  /// Writes an event. If that fails, the next event describes its new tags again: readers need a description.
  void append_summary(std::int64_t step, const detail::protobuf& summary) {
    std::set<std::string, std::less<>> described = std::exchange(described_now_, {});
    file_.append(detail::protobuf().message(5, summary), step);
    described_.merge(described);
  }

  detail::event_file file_;
  const registry* metrics_ = nullptr;
  std::mutex mutex_;
  std::set<std::string, std::less<>> described_;      // tags, by events that are in the file
  std::set<std::string, std::less<>> described_now_;  // tags, by the event that is being made
  std::map<std::string, distribution> written_;       // histograms at the last `write`, by tag
};

}  // namespace observe
HOCKET_END_NAMESPACE
