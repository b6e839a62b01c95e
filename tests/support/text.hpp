// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Helpers for tests of error texts and reports.
#pragma once

#include <string_view>

namespace hocket_test {

constexpr bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace hocket_test
