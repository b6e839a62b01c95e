// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the numbers of rows that go to each rank along the axis
//
// Each count would have to be converted, and negative counts would become large.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

#include <vector>

void route(const matrix_on_tp<shard<0>>& tokens, const std::vector<int>& sent) { route_rows<"tp">(tokens, sent); }
