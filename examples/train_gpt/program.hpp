// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The options of the program, and the work of one of its ranks.
#pragma once

#include "run_metrics.hpp"
#include "training.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace gpt {

struct program_options {
  std::string text = "build/text/jargon.txt";
  std::string schedule = "1f1b";
  int stages_per_rank = 1;
  std::string precision = "float";
  std::string wire = "float";
  std::string device = "cpu";
  std::string losses;
  std::string checkpoint;
  int checkpoint_every = 200;
  std::string resume;
  std::string out = ".";
  bool must_learn = false;
  bool stop_on_nan = false;
  double seconds = 100;
  metric_options metrics;
  training_options training;
};

/// Returns the schedule of the pipeline. Throws if there is none for these options, with the valid ones in the error.
hocket::plan::pipeline::schedule schedule_of(const program_options& options);

/// Throws if the checkpoint to resume from can't be read, or if losses can't be written.
void check_files(const program_options& options);

/// Reads the text, once for the whole program. Throws if it can't be read or is too short.
std::vector<std::uint8_t> text_of(const program_options& options);

/// Removes unfinished files of ranks that were killed. For the process that started the ranks.
void remove_unfinished_files(const program_options& options);

/// Connects, trains, and reports. Returns the exit code.
/// @param text what `text_of` returned; must be equal on all ranks, which is checked
/// @param computation the options that must be equal on all ranks, which is checked
int run_rank(const program_options& options, const std::vector<std::uint8_t>& text, const std::string& computation);

}  // namespace gpt
