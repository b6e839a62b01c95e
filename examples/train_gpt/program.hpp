// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the program is told, and what one of its ranks does.
#pragma once

#include "training.hpp"

#include <string>

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
  training_options training;
};

/// The pipeline's. Throws where there is none for these options, and says which there would be.
hocket::plan::pipeline::schedule schedule_of(const program_options& options);

/// Throws where the text or the checkpoint to go on from can't be read, or losses can't be written.
void check_files(const program_options& options);

/// Removes what ranks that were killed have left of files that they did not write to their end. For who has started them.
void remove_unfinished_files(const program_options& options);

/// Connects, trains, and reports. Returns the exit code.
int run_rank(const program_options& options);

}  // namespace gpt
