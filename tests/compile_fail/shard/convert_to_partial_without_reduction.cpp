// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the placement partial needs a reduction
//
// Which reduction is left to do?
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<varying>& x) { return convert<"tp", partial>(x); }
