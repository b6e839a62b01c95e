// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The mesh has only the axes "dp" and "tp".
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto rows(const matrix_on_tp<shard<1>>& x) { return redistribute<on<"sp", shard<0>>>(x); }
