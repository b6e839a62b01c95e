// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: varying data are no parts of a whole: only a partial sum can be made of them
//
// An all_gather of what is not said to be slices.
#include <shard/setting_with_domains.hpp>

auto gathered(const matrix_on_tp<varying>& x) { return convert<"tp", replicated>(x); }
