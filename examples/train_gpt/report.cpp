// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "report.hpp"

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
  constexpr double left = 80, width = 480, row = 26, top = 40;
  std::size_t most = 1;
  for (const rank_memory& each : ranks) most = std::max({most, each.peak, each.predicted});
  const double height = top + row * static_cast<double>(ranks.size()) + 20;
  char text[512];
  std::snprintf(
      text, sizeof text,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 800 %.0f\" width=\"800\" height=\"%.0f\" "
      "font-family=\"sans-serif\" font-size=\"13\" fill=\"#222\">\n"
      "<text x=\"%.0f\" y=\"22\" font-size=\"17\" font-weight=\"bold\">Parameters, gradients and states of each "
      "rank</text>\n",
      height, height, left);
  std::string svg = text;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const rank_memory& each = ranks[i];
    const auto length = [&](std::size_t bytes) {
      return width * static_cast<double>(bytes) / static_cast<double>(most);
    };
    const double y = top + row * static_cast<double>(i);
    std::snprintf(text, sizeof text,
                  "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">rank %zu</text>\n"
                  "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" fill=\"#cfe0f3\"/>\n"
                  "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"16\" fill=\"#14467f\"/>\n",
                  left - 10, y + 13, i, left, y, length(each.peak), left, y, length(each.counted));
    svg += text;
    std::snprintf(text, sizeof text,
                  "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#c77700\" stroke-width=\"3\"/>\n"
                  "<text x=\"%.1f\" y=\"%.1f\">%s, at most %s</text>\n",
                  left + length(each.predicted), left + length(each.predicted), y - 3, y + 19,
                  left + length(each.peak) + 8, y + 13, mebibytes(each.counted).c_str(), mebibytes(each.peak).c_str());
    svg += text;
  }
  return svg + "</svg>\n";
}

std::string html(const report& of) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>train_gpt</title>\n<style>\n"
      "body { font-family: sans-serif; max-width: 60em; margin: 2em auto; color: #222 }\n"
      "td { padding: 0.15em 1.5em 0.15em 0 } svg { max-width: 100%; height: auto }\n"
      "pre { background: #f4f4f4; padding: 1em; white-space: pre-wrap "
      "}\n</style></head>\n<body>\n<h1>train_gpt</h1>\n<table>\n";
  for (const auto& [name, value] : of.facts) {
    page += "<tr><td>" + escaped(name) + "</td><td>" + escaped(value) + "</td></tr>\n";
  }
  page +=
      "</table>\n<h2>Loss</h2>\n" + of.loss_svg + "<h2>One step: planned above, measured below</h2>\n" +
      of.schedule_svg +
      "<h2>Memory</h2>\n<p>Dark: stored between steps. Light: maximum, including gathered data and data in transit. "
      "Line: by the formula.</p>\n" +
      draw_memory(of.memory) + "<h2>Generated text</h2>\n<pre>" + escaped(of.sample) + "</pre>\n</body></html>\n";
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
