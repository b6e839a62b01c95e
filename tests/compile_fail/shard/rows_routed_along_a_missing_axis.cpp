// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// Experts are usually along ep; this mesh has none.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

auto route(const matrix_on_tp<shard<0>>& tokens) { return route_rows<"ep">(tokens, {1, 2}); }
