// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the axis must be followed by a placement
//
// int is not a placement.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/redistribute.hpp>

auto moved(const matrix_on_tp<invariant>& x) { return hocket::redistribute<hocket::on<"tp", int>>(x); }
