// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: all_gather has no such algorithm: it has ring, pairwise and direct
//
// The moves may include an exchange of slices.
#include <shard/setting_with_domains.hpp>

auto whole(const matrix_on_tp<shard<0>>& x) { return redistribute<on<"tp", replicated>>(x, with(double_tree)); }
