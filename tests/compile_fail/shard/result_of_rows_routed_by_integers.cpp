// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: as a std::vector<std::size_t>
//
// The counts have the wrong type, and the exchange is used afterwards.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

#include <vector>

void route(const matrix_on_tp<shard<0>>& tokens, const std::vector<int>& counts) {
  const auto exchange = route_rows<"tp">(tokens, counts);
  exchange(tokens);
}
