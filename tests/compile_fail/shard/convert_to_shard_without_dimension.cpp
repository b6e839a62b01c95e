// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the placement shard needs the dimension
//
// The dimension to shard is not specified.
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<replicated>& x) { return convert<"tp", shard>(x); }
