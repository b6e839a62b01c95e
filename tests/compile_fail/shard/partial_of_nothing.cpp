// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must name a reduction
//
// Which reduction is left to do?
#include <shard/setting_with_domains.hpp>

auto reduced(const matrix_on_tp<partial<>>& x) { return convert<"tp", invariant>(x); }
