// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion names the axis, and then how
//
// Nothing says as what.
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<invariant>& x) { return convert<"tp">(x); }
