// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a redistribution takes each axis together with its placement
//
// convert has this syntax, because it changes only one axis.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto summed(const vector_on_tp<partial<sum>>& x) { return redistribute<"tp", replicated>(x); }
