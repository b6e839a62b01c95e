// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a redistribution to a whole type needs the other mesh: pass it
//
// The type of the result was passed in place of the placements.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto whole(const matrix_on_tp<shard<0>>& x) { return redistribute<matrix_on_tp<replicated>>(x); }
