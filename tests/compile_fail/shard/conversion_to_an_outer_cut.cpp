// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an axis further right in the mesh cuts this dimension too
//
// tp has already sharded the whole tensor; dp would have to shard it first.
#include <shard/setting_with_domains.hpp>

auto cut(const matrix_of<on<"dp", replicated>, on<"tp", shard<0>>>& x) { return convert<"dp", shard<0>>(x); }
