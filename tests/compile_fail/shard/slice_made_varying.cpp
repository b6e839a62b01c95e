// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: slices and partial sums can't become varying
//
// The type would no longer specify which tokens a rank has.
#include <shard/setting_with_domains.hpp>

auto own(const matrix_on_tp<shard<0>>& tokens) { return convert<"tp", varying>(tokens); }
