// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: replicated data can't become invariant: .*; convert to invariant where the value is made
//
// The output of a replicated computation is stored like a parameter.
#include <shard/setting_with_domains.hpp>

auto kept(const matrix_on_tp<replicated>& y) { return convert<"tp", invariant>(y); }
