// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An error in the arguments: the program prints the reason and exits with status 2.
#pragma once

#include <stdexcept>

namespace plans {

struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace plans
