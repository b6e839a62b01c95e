// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must name a reduction
//
// What is named is the reduction, not what is reduced.
#include <shard/setting_with_domains.hpp>

auto reduced(const matrix_on_tp<partial<float>>& x) { return convert<"tp", invariant>(x); }
