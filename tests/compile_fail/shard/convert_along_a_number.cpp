// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be the name of an axis in quotes
//
// Axes have names, not numbers.
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<invariant>& x) { return convert<0, replicated>(x); }
