// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checkpoints of a training, in files: each rank writes its part, and any mesh can read all of them, because parts
/// consist of elements of named parameters. A checkpoint is valid only when all of its parts exist: until then
/// `FOLDER/latest` names the previous one.
///
///     FOLDER/latest                "step-200 crc32c 1a2b3c4d": the last number is the checksum of the name
///     FOLDER/step-200/rank-0       lines that end with LF, and after each `piece` line its values, as 32-bit floats
///
/// In a part, a line `crc32c` follows the lines of the header, each piece, and the line `end`. It has the checksum of all
/// bytes before it in the file.
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
  int ranks = 0;  ///< number of ranks that write parts
  int steps = 0;  ///< steps taken
  model_shape shape;
  std::uint64_t seed = 0;
  bool narrow = false;  ///< parameters in bfloat16
  std::optional<hocket::loss_scale_state> scale;
  long long skipped = 0;
  std::uint32_t checksum = 0;  ///< of what was read: equal if all bytes of all parts were
  saved_memory memory;
};

/// Writes the part of rank `rank`. Throws if that fails, and leaves no file then.
void write_part(const std::string& folder, const checkpoint& part, int rank);
/// Makes the checkpoint the latest. Call it after all `ranks` ranks have written their parts. Removes older and
/// unfinished checkpoints.
void complete(const std::string& folder, int steps, int ranks);
/// Removes unfinished checkpoints of ranks that were killed from `folder`, if it can tell them from the complete one. Call
/// it only while no rank writes one.
void remove_unfinished(const std::string& folder);

/// Returns the name of the latest checkpoint in `folder`. Throws if there is none, or if the file `latest` is damaged.
std::string latest_of(const std::string& folder);
/// Returns the number of steps in its name.
int steps_of_latest(const std::string& folder);

/// Reads the parameters `needed` from all parts of the latest checkpoint. Throws if there is none, if its shape, seed,
/// precision or use of a loss scale differs from `wanted`, or if a file is incomplete, damaged or belongs to another
/// checkpoint than the first; the error names the file and the reason, and the first byte that may be damaged.
checkpoint read_checkpoint(const std::string& folder, const checkpoint& wanted, const std::set<std::string>& needed);

}  // namespace gpt
