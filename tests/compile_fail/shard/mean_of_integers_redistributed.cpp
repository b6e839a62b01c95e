// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the mean of integers is not an integer
//
// Like mean_of_integers, with redistribute.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

using means = tensor<long, extents<dynamic>, ranks, on<"dp", replicated>, on<"tp", partial<mean>>>;

auto whole(const means& x) { return redistribute<on<"tp", replicated>>(x); }
