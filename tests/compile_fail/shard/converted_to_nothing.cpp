// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion changes the placement along one axis, which is named without
//
// Neither an axis nor a placement is named.
#include <shard/setting_with_domains.hpp>

auto converted(const vector_on_tp<invariant>& x) { return convert(x); }
