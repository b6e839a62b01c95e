// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only replicated data can be made partial, and only partial<sum>
//
// A conversion pads a slice with zeros to make it a summand; a redistribution does not.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto summand(const matrix_on_tp<shard<1>>& x) { return redistribute<on<"tp", partial<sum>>>(x); }
