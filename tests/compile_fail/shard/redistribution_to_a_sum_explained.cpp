// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only replicated data and slices can be made partial, and only partial<sum>
//
// A redistribution that does not compile has no plan.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto shown(const vector_on_tp<invariant>& x) { return explain_redistribution<on<"tp", partial<sum>>>(x); }
