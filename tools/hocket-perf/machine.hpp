// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// By which version, when and on which machine something was measured.
#pragma once

#include <string>

namespace perf {

/// Returns hocket's version.
std::string version();

std::string now_utc();

std::string processor_name();

/// Returns the release of the kernel.
std::string kernel_name();

}  // namespace perf
