// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What it takes to go on with a training, in files: each rank writes its part, and any mesh can read them all, as parts
/// consist of named parameters' elements. A checkpoint counts only when all of its parts are there: until then
/// `FOLDER/latest` names the one before.
///
///     FOLDER/latest                "step-200"
///     FOLDER/step-200/rank-0       lines that end with LF, and behind each `piece` line its values, as 32-bit floats
#pragma once

#include "memory.hpp"
#include "shape.hpp"

#include <hocket/gradient/loss_scale.hpp>

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace gpt {

struct checkpoint {
  int ranks = 0;  ///< that write parts
  int steps = 0;  ///< taken
  model_shape shape;
  std::uint64_t seed = 0;
  bool narrow = false;  ///< parameters in bfloat16
  std::optional<hocket::loss_scale_state> scale;
  long long skipped = 0;
  saved_memory memory;
};

/// Writes the part of rank `rank`. Throws where that can't be done, and then leaves no part.
void write_part(const std::string& folder, const checkpoint& part, int rank);
/// All `ranks` ranks have written theirs: the checkpoint becomes the latest; those before it are removed, and what was left
/// of one that was not written to its end.
void complete(const std::string& folder, int steps, int ranks);
/// What ranks that were killed have left in `folder` of checkpoints that not all of them wrote, goes. Only where none is
/// being written.
void remove_unfinished(const std::string& folder);

/// The name of the latest checkpoint in `folder`. Throws if there is none.
std::string latest_of(const std::string& folder);
/// How many steps it has by its name; 0 if that says nothing.
int steps_of_latest(const std::string& folder);

/// The parts of all ranks that wrote the latest checkpoint, of them the parameters `needed`. Throws if there is none, if
/// it does not go with `wanted`, in its shape, seed, precision or whether the loss is scaled, or if a file of it is not
/// whole, or is of another checkpoint than the first: with its name and what is wrong.
checkpoint read_checkpoint(const std::string& folder, const checkpoint& wanted, const std::set<std::string>& needed);

}  // namespace gpt
