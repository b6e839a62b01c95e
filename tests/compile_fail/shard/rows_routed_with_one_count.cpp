// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the counts that go to each rank, route_rows takes the counts that come from each rank, or options
//
// One number is not a count for each rank.
#include <hocket/shard/row_exchange.hpp>
#include <shard/setting_with_domains.hpp>

#include <cstddef>
#include <vector>

auto routed(const matrix_on_tp<shard<0>>& x, const std::vector<std::size_t>& sent) {
  return route_rows<"tp">(x, sent, 5);
}
