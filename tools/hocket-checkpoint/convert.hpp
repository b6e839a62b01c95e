// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Writes a checkpoint in another form: for another number of ranks, or as one file of whole tensors, for programs that know
/// nothing of shards.
#pragma once

#include <string>

namespace checkpoint_tool {

/// Writes the checkpoint `name` of `from`, or the newest if it is empty, into the folder `to`, in `ranks` files. Prints what
/// it has written. Throws an error if that fails.
int convert_to_ranks(const std::string& from, const std::string& name, const std::string& to, int ranks);

/// Writes it as one safetensors file. Uses as much memory as the largest part.
int convert_to_file(const std::string& from, const std::string& name, const std::string& file);

}  // namespace checkpoint_tool
