// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a whole type says what a tensor becomes on another mesh, and there is no mesh: pass it
//
// The type of the result, where the placements would do.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto whole(const matrix_on_tp<shard<0>>& x) { return redistribute<matrix_on_tp<replicated>>(x); }
