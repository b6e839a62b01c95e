// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Writes the indices of tar files.
#pragma once

#include <string>

namespace data_tool {

/// Writes the index of a tar file beside it, and prints how many samples it has. Throws if the file can't be an
/// uncompressed tar file of samples.
void write_index(const std::string& path);

}  // namespace data_tool
