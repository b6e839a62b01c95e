// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only a tensor can be converted
//
// A vector has no placement.
#include <shard/setting_with_domains.hpp>

#include <vector>

void reduce(const std::vector<double>& gradient) { convert<"tp", invariant>(gradient); }
