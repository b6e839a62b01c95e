// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion changes the placement along one axis, which is named without
//
// redistribute has this syntax, because it may change several axes.
#include <shard/setting_with_domains.hpp>

auto summed(const vector_on_tp<partial<sum>>& x) { return convert<on<"tp", replicated>>(x); }
