// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What was asked for cannot be done: the program ends with status 2 and says why.
#pragma once

#include <stdexcept>

namespace plans {

struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace plans
