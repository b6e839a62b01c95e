// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this collective has no such algorithm
//
// The moves may include an exchange of slices.
#include <shard/setting_with_domains.hpp>

auto whole(const matrix_on_tp<shard<0>>& x) { return redistribute<on<"tp", replicated>>(x, with(double_tree)); }
