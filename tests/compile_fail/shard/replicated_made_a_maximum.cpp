// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: data that are not partial can only become partial<sum>
//
// Only sums have a known neutral element, which keeps the whole unchanged.
#include <shard/setting_with_domains.hpp>

auto largest(const vector_on_tp<replicated>& x) { return convert<"tp", partial<maximum>>(x); }
