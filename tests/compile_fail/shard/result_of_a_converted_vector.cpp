// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only a tensor can be converted
//
// This text is the first error, before the errors that follow from it.
#include <shard/setting_with_domains.hpp>

#include <vector>

void reduce(const std::vector<float>& gradient) {
  auto reduced = convert<"tp", invariant>(gradient);
  reduced.elements();
}
