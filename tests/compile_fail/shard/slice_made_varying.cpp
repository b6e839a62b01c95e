// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: slices and partial sums can't become varying
//
// Tokens of one's own, of which nobody could tell any more which they are.
#include <shard/setting_with_domains.hpp>

auto own(const matrix_on_tp<shard<0>>& tokens) { return convert<"tp", varying>(tokens); }
