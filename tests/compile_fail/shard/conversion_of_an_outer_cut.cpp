// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an axis further right in the mesh cuts this dimension too
//
// tp shards the slices of dp, so that a gather along dp would not give slices of the whole tensor.
#include <shard/setting_with_domains.hpp>

auto whole(const matrix_of<on<"dp", shard<0>>, on<"tp", shard<0>>>& x) { return convert<"dp", replicated>(x); }
