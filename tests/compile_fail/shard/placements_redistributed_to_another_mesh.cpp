// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the tensor, a redistribution on the tensor's own mesh takes only options
//
// Another mesh may have other axes, for which these placements are not defined.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

void change(const matrix_on_tp<shard<0>>& x, const ranks& other) { redistribute<on<"tp", replicated>>(x, other); }
