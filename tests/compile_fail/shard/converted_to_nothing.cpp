// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion goes along one axis, which it names without
//
// Neither an axis nor a placement is named.
#include <shard/setting_with_domains.hpp>

auto converted(const vector_on_tp<invariant>& x) { return convert(x); }
