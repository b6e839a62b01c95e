// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a partial result can't become one of another reduction: reduce it first
//
// A sum is not a mean.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto average(const vector_on_tp<partial<sum>>& x) { return redistribute<on<"tp", partial<mean>>>(x); }
