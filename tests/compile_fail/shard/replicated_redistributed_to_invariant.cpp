// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: replicated data can't become invariant: .*; make the value invariant where it is computed
//
// The output of a replicated computation is stored as a parameter.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto kept(const matrix_on_tp<replicated>& x) { return redistribute<on<"tp", invariant>>(x); }
