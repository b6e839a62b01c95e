// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of results. A reader never sees a part of one.
#pragma once

#include <string>

namespace perf {

/// Returns whether the file can be written, so that a long measurement does not fail at its end; if not, sets `errno`.
/// Creates no file.
bool can_write(const std::string& file);

/// Replaces a regular file at once, and writes to other files, such as pipes, directly. Throws `std::runtime_error`,
/// which begins with `option`, if that fails; a file of that name is then unchanged.
void write_file(const std::string& file, const std::string& text, const std::string& option);

}  // namespace perf
