// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The reason of an error that a call raises.
#pragma once

#include "support/catch.hpp"

#include <hocket/core/error.hpp>

#include <functional>
#include <string>

namespace observe_test {

/// Returns the reason of the error of kind `code` that `act` raises; empty if it raises none.
inline std::string refusal_of(const std::function<void()>& act, hocket::errc code = hocket::errc::invalid_argument) {
  try {
    act();
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == code);
    return cause.reason();
  }
  return {};
}

}  // namespace observe_test
