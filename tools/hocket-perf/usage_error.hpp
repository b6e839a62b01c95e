// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
#pragma once

#include <stdexcept>

namespace perf {

/// An error in the arguments, which all ranks find alike.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace perf
