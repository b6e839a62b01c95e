// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor already has this placement; reducing it again would count it once per rank
//
// Each rank already has the whole input.
#include <shard/setting_with_domains.hpp>

auto input(const matrix_on_tp<replicated>& x) { return convert<"tp", replicated>(x); }
