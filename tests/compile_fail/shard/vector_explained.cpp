// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only a tensor can be redistributed
//
// A vector has no placement.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

#include <vector>

auto shown(const std::vector<double>& x) { return explain_redistribution<on<"tp", shard<0>>>(x); }
