// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: explain_redistribution takes the tensor
//
// An explanation starts no collective.
#include <hocket/shard/redistribute.hpp>
#include <shard/setting_with_domains.hpp>

auto explained(const matrix_on_tp<shard<0>>& x) { return explain_redistribution<on<"tp", replicated>>(x, with(ring)); }
