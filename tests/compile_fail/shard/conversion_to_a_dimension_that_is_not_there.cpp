// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor has no dimension d to cut for shard<d>
//
// A vector has no columns.
#include <shard/setting_with_domains.hpp>

auto cut(const vector_on_tp<replicated>& x) { return convert<"tp", shard<1>>(x); }
