// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the placement shard needs the dimension
//
// The dimension to shard is not specified.
#include <shard/setting_with_domains.hpp>

void reduce(const vector_on_tp<partial<sum>>& x) { const auto slice = convert<"dp", shard>(x); }
