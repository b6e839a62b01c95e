// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The bytes in which a rank hands its metrics to another process of its host.
///
/// Little-endian integers; the bits of numbers; texts and lists after their lengths; last, a checksum.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/observe/registry.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {

/// The metrics of a rank, with labels that distinguish them from those of other ranks.
struct rank_metrics {
  labels constant;  ///< sorted by name
  snapshot metrics;
};

namespace detail {

inline constexpr std::string_view snapshot_mark = "hocket metrics 1\n";

class snapshot_encoder {
 public:
  snapshot_encoder() { bootstrap::detail::append_bytes(result_, bootstrap::text_bytes(snapshot_mark)); }

  void add(const labels& all) {
    add(std::uint64_t{all.size()});
    for (const auto& [name, value] : all) add(name), add(value);
  }
  void add(const family& each) {
    add(each.name);
    add(each.help);
    add(static_cast<std::uint64_t>(each.kind));
    if (each.kind == metric_kind::histogram) add(each.bounds);
    add(std::uint64_t{each.samples.size()});
    for (const sample& one : each.samples) {
      add(one.labels);
      add(each.kind == metric_kind::histogram ? one.values.sum : one.value);
      for (const std::uint64_t count : one.values.counts) add(count);
    }
  }
  void add(std::uint64_t value) { bootstrap::detail::append_integer(result_, value); }

  bootstrap::blob finish() && {
    add(hocket::detail::checksum(result_));
    return std::move(result_);
  }

 private:
  void add(double value) { add(std::bit_cast<std::uint64_t>(value)); }
  void add(const std::string& text) {
    add(std::uint64_t{text.size()});
    bootstrap::detail::append_bytes(result_, bootstrap::text_bytes(text));
  }
  void add(const std::vector<double>& values) {
    add(std::uint64_t{values.size()});
    for (const double each : values) add(each);
  }

  bootstrap::blob result_;
};

/// Reads what the encoder wrote, and checks that everything is as a registry has it. Memory is used only for what was
/// read.
class snapshot_decoder {
 public:
  std::string decode(bootstrap::byte_view bytes, rank_metrics& result) {
    if (bytes.size() < snapshot_mark.size() + sizeof(std::uint64_t)) return "it is too short";
    const bootstrap::byte_view checked = bytes.first(bytes.size() - sizeof(std::uint64_t));
    const std::uint64_t expected =
        bootstrap::detail::blob_reader(bytes.subspan(checked.size())).template integer<std::uint64_t>();
    if (hocket::detail::checksum(checked) != expected) return "its checksum does not match";
    rest_ = bootstrap::detail::blob_reader(checked);
    if (bootstrap::blob_text(rest_.bytes(snapshot_mark.size())) != snapshot_mark) return "it is of another version";
    result.constant = read_labels();
    const std::uint64_t families = integer();
    for (std::uint64_t i = 0; i < families && may_read(); ++i) {
      family next = read_family();
      if (i > 0 && !(result.metrics.back().name < next.name)) fail("the names are not in ascending order");
      result.metrics.push_back(std::move(next));
    }
    if (may_read() && rest_.left() > 0) fail("bytes follow its end");
    return problem_.empty() && !rest_.ok() ? "it ends too early" : problem_;
  }

 private:
  bool may_read() const noexcept { return rest_.ok() && problem_.empty(); }
  void fail(std::string problem) {
    if (may_read()) problem_ = std::move(problem);
  }

  std::uint64_t integer() { return rest_.template integer<std::uint64_t>(); }
  double number() { return std::bit_cast<double>(integer()); }
  std::string text() { return bootstrap::blob_text(rest_.bytes(integer())); }

  labels read_labels() {
    labels result;
    const std::uint64_t count = integer();
    for (std::uint64_t i = 0; i < count && may_read(); ++i) {
      std::string name = text();
      result.emplace_back(std::move(name), text());
    }
    if (!std::is_sorted(result.begin(), result.end())) fail("labels are not in ascending order");
    if (std::string problem = problem_with(result); !problem.empty()) fail(std::move(problem));
    return result;
  }

  family read_family() {
    family result;
    result.name = text();
    result.help = text();
    const std::uint64_t kind = integer();
    if (kind > static_cast<std::uint64_t>(metric_kind::histogram)) fail("there is no such kind of metric");
    if (std::string problem = problem_with(result.name, result.help); !problem.empty()) fail(std::move(problem));
    if (!may_read()) return result;
    result.kind = static_cast<metric_kind>(kind);
    if (result.kind == metric_kind::histogram) read_bounds(result.bounds);
    const std::uint64_t samples = integer();
    for (std::uint64_t i = 0; i < samples && may_read(); ++i) {
      sample next = read_sample(result);
      if (i > 0 && !(result.samples.back().labels < next.labels))
        fail("the labels of a name are not in ascending order");
      result.samples.push_back(std::move(next));
    }
    return result;
  }

  void read_bounds(std::vector<double>& bounds) {
    const std::uint64_t count = integer();
    for (std::uint64_t i = 0; i < count && may_read(); ++i) bounds.push_back(number());
    if (std::string problem = problem_with(bounds); !problem.empty()) fail(std::move(problem));
  }

  sample read_sample(const family& of) {
    sample result;
    result.labels = read_labels();
    const bool is_histogram = of.kind == metric_kind::histogram;
    (is_histogram ? result.values.sum : result.value) = number();
    for (std::size_t i = 0; is_histogram && i < of.bounds.size() + 1 && may_read(); ++i)
      result.values.counts.push_back(integer());
    return result;
  }

  bootstrap::detail::blob_reader rest_{{}};
  std::string problem_;
};

}  // namespace detail

/// Returns the metrics of a rank as bytes, which `read_snapshot` reads.
inline bootstrap::blob snapshot_bytes(const snapshot& metrics, const labels& constant) {
  detail::snapshot_encoder result;
  result.add(constant);
  result.add(std::uint64_t{metrics.size()});
  for (const family& each : metrics) result.add(each);
  return std::move(result).finish();
}

/// Reads the metrics of a rank. Returns why these are not bytes of `snapshot_bytes`; empty if they are. In the other
/// case, `result` is not defined.
inline std::string read_snapshot(bootstrap::byte_view bytes, rank_metrics& result) {
  result = {};
  return detail::snapshot_decoder().decode(bytes, result);
}

}  // namespace observe
HOCKET_END_NAMESPACE
