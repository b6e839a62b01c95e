// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion changes the placement along one axis, which is named without
//
// Both the axis and the placement are missing.
#include <shard/setting_with_domains.hpp>

auto converted(const vector_on_tp<invariant>& x) { return convert(x); }
