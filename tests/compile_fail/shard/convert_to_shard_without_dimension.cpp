// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: shard is no placement without the dimension
//
// Which dimension is to be cut?
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<replicated>& x) { return convert<"tp", shard>(x); }
