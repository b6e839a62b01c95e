// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a training came to, as one page that a browser opens without a network: numbers, the loss, the schedule as it
/// was planned and as it ran, and what each rank kept in memory.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace gpt {

/// What one rank kept, in bytes.
struct rank_memory {
  std::size_t predicted = 0;  ///< by the formula
  std::size_t counted = 0;    ///< from step to step
  std::size_t peak = 0;       ///< with what was gathered, or on its way
};

struct report {
  std::vector<std::pair<std::string, std::string>> facts;  ///< names and values, in order
  std::string loss_svg;
  std::string schedule_svg;
  std::vector<rank_memory> memory;  ///< of each rank
  std::string sample;
};

/// Bars for each rank, as SVG.
std::string draw_memory(const std::vector<rank_memory>& ranks);

/// The page, as HTML with its pictures in it.
std::string html(const report& of);

/// Makes the folder, if it is missing. Throws where nothing can be written into it.
void make_folder(const std::string& path);

/// Writes `text` to the file `path`: all of it, or, where that fails, nothing; then raises.
void write_file(const std::string& path, const std::string& text);
/// What a process that was killed has left of a file that it did not write to its end, goes.
void remove_unfinished_file(const std::string& path);

}  // namespace gpt
