// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

#include "picture.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace gpt {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char each : text) {
    switch (each) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      case '"': out += "&quot;"; break;
      default: out += each;
    }
  }
  return out;
}

std::string mebibytes(std::size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / (1 << 20));
  return text;
}

/// Waits until the disk has stored the file: otherwise a power failure may preserve its new name without its content.
std::error_code flush_to_disk(const std::filesystem::path& path) {
  const int opened = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::error_code problem;
  if (opened < 0 || ::fsync(opened) != 0) problem = {errno, std::generic_category()};
  if (opened >= 0) ::close(opened);
  return problem;
}

}  // namespace

std::string draw_memory(const std::vector<rank_memory>& ranks) {
  constexpr double left = 80, width = 440, row = 26, top = 40;
  std::size_t most = 1;
  for (const rank_memory& each : ranks) most = std::max({most, each.peak, each.predicted});
  const double height = top + row * static_cast<double>(ranks.size()) + 20;
  const std::string heading = "Parameters, gradients and states of each rank";
  std::string svg = begin_picture(800, static_cast<int>(height), heading);
  svg += "<text x=\"" + std::to_string(static_cast<int>(left)) + "\" y=\"22\" font-size=\"17\" font-weight=\"bold\">" +
         heading + "</text>\n";
  char text[512];
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const rank_memory& each = ranks[i];
    const auto length = [&](std::size_t bytes) {
      return width * static_cast<double>(bytes) / static_cast<double>(most);
    };
    const double y = top + row * static_cast<double>(i);
    std::snprintf(text, sizeof text,
                  "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">rank %zu</text>\n"
                  "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" class=\"peak\"/>\n"
                  "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" class=\"stored\"/>\n",
                  left - 10, y + 13, i, left, y, length(each.peak), left, y, length(each.counted));
    svg += text;
    std::snprintf(text, sizeof text,
                  "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" class=\"formula\" stroke-width=\"3\"/>\n"
                  "<text x=\"%.1f\" y=\"%.1f\">%s, at most %s</text>\n",
                  left + length(each.predicted), left + length(each.predicted), y - 3, y + 19,
                  left + length(each.peak) + 8, y + 13, mebibytes(each.counted).c_str(), mebibytes(each.peak).c_str());
    svg += text;
  }
  return svg + "</svg>\n";
}

namespace {

/// The begin of the page, up to its heading. Colours follow the reader's preference. In a narrow window, pictures and the
/// table scroll inside their boxes: pictures would become too small to read.
constexpr const char* begin_page = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>train_gpt</title>
<style>
:root { color-scheme: light dark; --page: #ffffff; --ink: #222222; --box: #f4f4f4 }
@media (prefers-color-scheme: dark) { :root { --page: #14181f; --ink: #e5e7eb; --box: #1d232c } }
body { font-family: sans-serif; max-width: 75rem; margin: 0 auto; padding: 1rem; background: var(--page); color: var(--ink) }
td { padding: 0.15em 1.5em 0.15em 0; vertical-align: top; overflow-wrap: anywhere }
td:first-child { white-space: nowrap }
.box { overflow-x: auto; margin: 0 }
.box svg { display: block; min-width: 40rem }
.box svg.hocket { min-width: 56rem }
pre { background: var(--box); padding: 1em; white-space: pre-wrap; overflow-wrap: anywhere }
</style></head>
<body>
<h1>train_gpt</h1>
)";

std::string in_box(const std::string& picture) { return "<figure class=\"box\">\n" + picture + "</figure>\n"; }

}  // namespace

std::string html(const report& of) {
  std::string page = begin_page;
  page += "<div class=\"box\"><table>\n";
  for (const auto& [name, value] : of.facts) {
    page += "<tr><td>" + escaped(name) + "</td><td>" + escaped(value) + "</td></tr>\n";
  }
  page += "</table></div>\n<h2>Loss</h2>\n" + in_box(of.loss_svg);
  page += "<h2>The run</h2>\n";
  for (const std::string& each : of.run_svgs) page += in_box(each);
  page += "<h2>One step: planned above, measured below</h2>\n" + in_box(of.schedule_svg);
  page +=
      "<h2>Memory</h2>\n<p>Strong: stored between steps. Pale: maximum, including gathered data and data in transit. "
      "Line: by the formula.</p>\n" +
      in_box(draw_memory(of.memory));
  page += "<h2>Generated text</h2>\n<pre>" + escaped(of.sample) + "</pre>\n</body></html>\n";
  return page;
}

void make_folder(const std::string& path) {
  std::error_code problem;
  std::filesystem::create_directories(path, problem);
  if (!problem && ::access(path.c_str(), W_OK) != 0) problem = {errno, std::generic_category()};
  if (problem) throw std::runtime_error("cannot write into the folder '" + path + "': " + problem.message());
}

namespace {

std::filesystem::path target_of(const std::string& path) {
  std::error_code problem;
  std::filesystem::path target = std::filesystem::weakly_canonical(path, problem);  // so that a link is not replaced
  return problem ? std::filesystem::path(path) : target;
}

/// Returns the name of the file that is written and then renamed to `target`.
std::string part_of(const std::filesystem::path& target) { return target.string() + ".part"; }

}  // namespace

void write_file(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  std::error_code problem;
  const fs::path target = target_of(path);
  // A regular file is replaced atomically; anything else, such as a pipe, is written to directly.
  const fs::file_status found = fs::symlink_status(target, problem);
  const bool replaces = !fs::exists(found) || fs::is_regular_file(found);
  const std::string part = replaces ? part_of(target) : path;
  problem.clear();
  errno = 0;
  std::ofstream file(part, std::ios::binary);
  file << text;
  file.close();
  if (file) {
    if (replaces) problem = flush_to_disk(part);
    if (replaces && !problem) fs::rename(part, target, problem);
    if (replaces && !problem) flush_to_disk(target.parent_path());  // not every file system supports this
  } else {
    problem = {errno != 0 ? errno : EIO, std::generic_category()};
  }
  if (problem) {
    std::error_code ignored;
    if (replaces) fs::remove(part, ignored);
    throw std::runtime_error("cannot write '" + path + "': " + problem.message());
  }
}

void remove_unfinished_file(const std::string& path) {
  std::error_code missing;
  std::filesystem::remove(part_of(target_of(path)), missing);
}

}  // namespace gpt
