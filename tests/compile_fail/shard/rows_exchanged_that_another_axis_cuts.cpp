// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: another axis cuts the rows, too
//
// After the exchange, the slices of the dp ranks would not have known numbers of rows.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

using tokens = matrix_of<on<"dp", shard<0>>, on<"tp", varying>>;
auto routed(const tokens& rows) { return route_rows<"tp">(rows, {1, 2}); }
