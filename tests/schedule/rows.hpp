// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The text of a schedule without its comments, for comparisons in tests.
#pragma once

#include <hocket/schedule/text.hpp>

#include <string>

namespace pipeline_test {

inline std::string rows(const hocket::plan::pipeline::schedule& plan) {
  std::string text = print(plan);
  while (!text.empty() && text.front() == '#') text.erase(0, text.find('\n') + 1);
  return text;
}

}  // namespace pipeline_test
