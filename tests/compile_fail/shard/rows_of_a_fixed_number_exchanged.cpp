// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: ranks receive different numbers of rows: make the first of the tensor's extents dynamic
//
// The type specifies 8 rows, but a rank may receive any number.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

using tokens = tensor<float, extents<8, dynamic>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;
auto routed(const tokens& rows) { return route_rows<"tp">(rows, {1, 2}); }
