// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// Code for context parallelism runs on a mesh without that axis.
#include <shard/setting_with_domains.hpp>

auto whole(const matrix_on_tp<shard<0>>& x) { return convert<"cp", replicated>(x); }
