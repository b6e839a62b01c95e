// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass a tensor's placements as on<
//
// The axis is missing.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto gathered(const matrix_on_tp<shard<0>>& x) { return redistribute<replicated>(x); }
