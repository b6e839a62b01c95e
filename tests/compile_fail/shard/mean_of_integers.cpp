// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the mean of integers is not an integer
//
// For the mean of 3 and 4 on two ranks, each rank's half would be truncated: 1 + 2.
#include <shard/setting_with_domains.hpp>

using means = tensor<int, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", partial<mean>>>;

auto whole(const means& x) { return convert<"tp", replicated>(x); }
