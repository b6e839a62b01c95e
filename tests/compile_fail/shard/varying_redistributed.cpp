// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: varying data are not parts of a whole, so they can't be redistributed
//
// It is unknown which slice belongs to which rank.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto rows(const matrix_on_tp<varying>& x) { return redistribute<on<"tp", shard<0>>>(x); }
