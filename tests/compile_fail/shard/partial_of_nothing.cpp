// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must name a reduction
//
// The pending reduction is not specified.
#include <shard/setting_with_domains.hpp>

auto reduced(const matrix_on_tp<partial<>>& x) { return convert<"tp", invariant>(x); }
