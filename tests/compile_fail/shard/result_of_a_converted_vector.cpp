// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only a tensor can be converted
//
// The sentence is the first error, before what follows from it.
#include <shard/setting_with_domains.hpp>

#include <vector>

void reduce(const std::vector<float>& gradient) {
  auto reduced = convert<"tp", invariant>(gradient);
  reduced.elements();
}
