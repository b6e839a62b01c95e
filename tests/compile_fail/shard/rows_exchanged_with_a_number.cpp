// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the tensor, an exchange of rows takes only options
//
// Options are made by with(...).
#include <hocket/shard/row_exchange.hpp>
#include <shard/setting_with_domains.hpp>

auto exchanged(const row_exchange<"tp", shard<0>, varying>& move, const matrix_on_tp<shard<0>>& x) {
  return move(x, 5);
}
