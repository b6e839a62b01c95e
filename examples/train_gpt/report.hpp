// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The results of a training as one page that a browser can open offline: numbers, the loss, the schedule as planned
/// and as run, and the memory of each rank. It fits wide and narrow windows, and light and dark pages.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace gpt {

/// Memory of one rank, in bytes.
struct rank_memory {
  std::size_t predicted = 0;  ///< by the formula
  std::size_t counted = 0;    ///< stored between steps
  std::size_t peak = 0;       ///< maximum, including gathered data and data in transit
};

struct report {
  std::vector<std::pair<std::string, std::string>> facts;  ///< names and values, in order
  std::string loss_svg;
  std::vector<std::string> run_svgs;  ///< how the training ran
  std::string schedule_svg;
  std::vector<rank_memory> memory;  ///< of each rank
  std::string sample;
};

/// Draws bars for each rank, as SVG.
std::string draw_memory(const std::vector<rank_memory>& ranks);

/// Returns the page as HTML with embedded pictures.
std::string html(const report& of);

/// Creates the folder if it is missing. Throws if it is not writable.
void make_folder(const std::string& path);

/// Writes `text` to the file `path` atomically. If that fails, leaves the file unchanged and throws.
void write_file(const std::string& path, const std::string& text);
/// Removes the unfinished file that a killed process left beside `path`.
void remove_unfinished_file(const std::string& path);

}  // namespace gpt
