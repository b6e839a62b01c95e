// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only ranks that have different rows can exchange them
//
// Each rank would send its copy of all tokens.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

auto routed(const matrix_on_tp<replicated>& tokens) { return route_rows<"tp">(tokens, {1, 2}); }
