// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: varying data are not parts of a whole: they can only become a partial sum
//
// An all_gather needs slices, and varying data may be anything.
#include <shard/setting_with_domains.hpp>

auto gathered(const matrix_on_tp<varying>& x) { return convert<"tp", replicated>(x); }
