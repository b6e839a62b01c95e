// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor already has this placement; reducing it again would count it once per rank
//
// Both the layer and its caller reduce.
#include <shard/setting_with_domains.hpp>

auto output(const matrix_on_tp<invariant>& y) { return convert<"tp", invariant>(y); }
