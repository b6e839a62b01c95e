// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only replicated data and slices can be made partial, and only partial<sum>
//
// The gradient of a summand is the same on all ranks, but nothing would add the uses of invariant data.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto summand(const matrix_on_tp<invariant>& x) { return redistribute<on<"tp", partial<sum>>>(x); }
