// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the placement partial needs a reduction
//
// The pending reduction is not specified.
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<varying>& x) { return convert<"tp", partial>(x); }
