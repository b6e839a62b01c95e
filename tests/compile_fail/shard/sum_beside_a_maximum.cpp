// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: partial results of two different reductions along two axes
//
// The maximum over dp is still pending.
#include "setting.hpp"

#include <hocket/shard/convert.hpp>

using largest = vector_of<on<"dp", partial<maximum>>, on<"tp", replicated>>;

auto summands_of(const largest& x) { return convert<"tp", partial<sum>>(x); }
