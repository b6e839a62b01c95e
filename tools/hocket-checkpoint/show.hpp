// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Shows the tensors of a checkpoint, or of a safetensors file that any program has written.
#pragma once

#include <string>

namespace checkpoint_tool {

/// Prints the tensors of the checkpoint `name` in the folder `path`, or of the newest if `name` is empty; if `as_json`, the
/// manifest. Throws an error if it can't be read.
int show_checkpoint(const std::string& path, const std::string& name, bool as_json);

/// Prints the tensors of a safetensors file; if `as_json`, its header. Reads the header alone.
int show_file(const std::string& path, bool as_json);

}  // namespace checkpoint_tool
