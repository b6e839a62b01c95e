// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion needs the name of an axis and one new placement along it
//
// The new placement is missing.
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<invariant>& x) { return convert<"tp">(x); }
