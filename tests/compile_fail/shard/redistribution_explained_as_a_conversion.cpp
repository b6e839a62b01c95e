// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a redistribution takes each axis together with its placement
//
// The redistribution to explain does not compile either.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto explained(const vector_on_tp<partial<sum>>& x) { return explain_redistribution<"tp", invariant>(x); }
