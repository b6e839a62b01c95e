// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the numbers of rows that go to each rank along the axis
//
// Counts of another type would be converted one by one, and negative ones become large.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

#include <vector>

void route(const matrix_on_tp<shard<0>>& tokens, const std::vector<int>& sent) { route_rows<"tp">(tokens, sent); }
