// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor already has this placement; reducing it again would count it once per rank
//
// The conversion would reduce nothing.
#include <shard/setting_with_domains.hpp>

auto largest(const vector_on_tp<partial<maximum>>& x) { return convert<"tp", partial<maximum>>(x); }
