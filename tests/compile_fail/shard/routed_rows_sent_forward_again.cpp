// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: these rows do not have the placement that the exchange was made for
//
// The transpose of the exchange returns the results; a second forward exchange would send them to wrong ranks.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

auto combined(const matrix_on_tp<shard<0>>& tokens) {
  const auto to_experts = route_rows<"tp">(tokens, {1, 2});
  return to_experts(to_experts(tokens));
}
