// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Checks that a call is rejected with a message that states the reason.
#pragma once

#include "support/catch.hpp"

#include <hocket/core/error.hpp>

#include <string>

namespace pipeline_test {

/// `make` must raise `invalid_argument` with a message that contains `says`.
template <class Make>
void refuses(Make make, const std::string& says) {
  try {
    make();
    FAIL_CHECK("nothing was rejected; expected: " << says);
  } catch (const hocket::error& found) {
    CHECK(found.code() == hocket::errc::invalid_argument);
    CHECK_THAT(found.what(), Catch::Contains(says));
  }
}

}  // namespace pipeline_test
