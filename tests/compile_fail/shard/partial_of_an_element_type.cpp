// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must name a reduction
//
// partial<R> names the reduction, not the type of its elements.
#include <shard/setting_with_domains.hpp>

auto reduced(const matrix_on_tp<partial<float>>& x) { return convert<"tp", invariant>(x); }
