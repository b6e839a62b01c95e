// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tables.hpp"

#include "results.hpp"
#include "text.hpp"

#include <hocket/core/config.hpp>

#include <algorithm>
#include <numeric>

namespace perf {

namespace {

/// Returns the value with as many decimals as fit into `width` characters.
std::string fitting(double value, int width, int decimals) {
  for (; decimals >= 0; --decimals) {
    const std::string shown = text("%.*f", decimals, value);
    if (shown.size() <= static_cast<std::size_t>(width)) return shown;
  }
  return text("%.1e", value);
}

/// nccl-tests' names of 8-bit floats are shorter than hocket's.
std::string nccl_type_name(const row& line) {
  const std::string name = type_name(line);
  return name.starts_with("float8_") ? "f8" + name.substr(7) : name;
}

std::string nccl_group(const row& line, const std::optional<figures>& of, const std::string& wrong) {
  if (!of) return text("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
  return text("  %7s  %6s  %6s  %6s", fitting(1e6 * percentile(of->seconds, 0.5), 7, 2).c_str(),
              fitting(line.algorithm_bandwidth(*of), 6, 3).c_str(), fitting(line.bus_bandwidth(*of), 6, 3).c_str(),
              wrong.c_str());
}

std::string nccl_percentiles(const std::optional<figures>& of, const settings& wanted) {
  std::string all;
  for (const double each : wanted.percentiles) {
    all += text("  %7s", of ? fitting(1e6 * percentile(of->seconds, each / 100), 7, 2).c_str() : "N/A");
  }
  return all;
}

std::string wrong_text(const std::optional<figures>& of) {
  return of && of->wrong ? std::to_string(*of->wrong) : "N/A";
}

const std::optional<figures>& osu_figures(const row& line) {
  return line.out_of_place ? line.out_of_place : line.in_place;
}

double mean(const std::vector<double>& of) {
  return of.empty() ? 0 : std::accumulate(of.begin(), of.end(), 0.0) / static_cast<double>(of.size());
}

}  // namespace

std::string nccl_header(const settings& wanted) {
  std::string names = text("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
  std::string units = text("# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
  std::string groups = text("# %10s  %12s  %8s  %6s  %6s", "", "", "", "", "");
  for (const char* const group : {"         out-of-place           ", "           in-place             "}) {
    groups += text(" %s", group);
    names += text("  %7s  %6s  %6s  %6s", "time", "algbw", "busbw", "#wrong");
    units += text("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
  }
  // Each group has its percentiles in the same order: first those of all out-of-place calls.
  for (int group = 0; group < 2; ++group) {
    for (const double each : wanted.percentiles) {
      names += text("  %7s", percentile_name(each).c_str());
      units += text("  %7s", "(us)");
      groups += text("  %7s", group == 0 ? "out-of" : "in");
    }
  }
  return groups + "\n" + names + "\n" + units + "\n";
}

std::string nccl_row(const row& line, const settings& wanted) {
  // Scripts expect numbers in both groups, so the only placement of a call is shown twice.
  const bool both = wanted.out_of_place && wanted.in_place;
  const auto& first = !line.out_of_place && both ? line.in_place : line.out_of_place;
  const auto& second = !line.in_place && both ? line.out_of_place : line.in_place;
  return text("%12zu  %12zu  %8s  %6s  %6d", line.bytes, line.count, nccl_type_name(line).c_str(), operation_name(line),
              line.root) +
         nccl_group(line, first, wrong_text(line.out_of_place)) + nccl_group(line, second, wrong_text(line.in_place)) +
         nccl_percentiles(first, wanted) + nccl_percentiles(second, wanted) + "\n";
}

std::string one_placement_text(collective what, const settings& wanted) {
  const bool out = has_placement(what, placement::out_of_place);
  const bool in = has_placement(what, placement::in_place);
  if (!wanted.out_of_place || !wanted.in_place || (out && in)) return "";
  return std::string(to_string(what)) + " has no " + (out ? "in-place" : "out-of-place") +
         " form: both groups of columns show the same calls";
}

std::size_t osu_size(const row& line) {
  switch (line.what) {
    case collective::all_gather:
    case collective::all_gather_v:
    case collective::all_to_all:
    case collective::all_to_all_v:
    case collective::gather:
    case collective::gather_v:
    case collective::scatter:
    case collective::scatter_v: return line.count * size_of(line.type);
    case collective::all_reduce:
    case collective::reduce_scatter:
    case collective::reduce_scatter_v:
    case collective::broadcast:
    case collective::reduce:
    case collective::barrier:
    case collective::send_recv: break;
  }
  return line.bytes;
}

std::string osu_header(const row& line, const settings& wanted) {
  std::string all = text("# hocket-perf %d.%d.%d %s Latency Test, in the layout of OSU Micro-Benchmarks\n",
                         HOCKET_VERSION_MAJOR, HOCKET_VERSION_MINOR, HOCKET_VERSION_PATCH, to_string(line.what));
  all += text("# Datatype: %s. Operation: %s. Calls are %s.\n", type_name(line), operation_name(line),
              line.out_of_place ? "out-of-place" : "in-place");
  all += line.what == collective::barrier ? "# Avg Latency(us)" : text("%-10s%18s", "# Size", "Avg Latency(us)");
  if (wanted.full) all += text("%18s%18s%12s", "Min Latency(us)", "Max Latency(us)", "Iterations");
  for (const double each : wanted.percentiles) all += text("%18s", text("P%g Tail Lat(us)", each).c_str());
  return all + "\n";
}

std::string osu_row(const row& line, const settings& wanted) {
  const std::optional<figures>& of = osu_figures(line);
  if (!of) return "";
  const double average = 1e6 * mean(of->rank_means);
  std::string all =
      line.what == collective::barrier ? text("%17.2f", average) : text("%-10zu%18.2f", osu_size(line), average);
  if (wanted.full) {
    all += text("%18.2f%18.2f%12zu", 1e6 * percentile(of->rank_means, 0), 1e6 * percentile(of->rank_means, 1),
                of->seconds.size());
  }
  for (const double each : wanted.percentiles) all += text("%18.2f", 1e6 * percentile(of->seconds, each / 100));
  return all + "\n";
}

}  // namespace perf
