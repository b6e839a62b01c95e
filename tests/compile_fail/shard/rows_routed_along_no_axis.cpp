// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: route_rows needs the name of an axis
//
// The axis is missing, so that the ranks to which the counts refer are unknown.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

#include <vector>

void route(const matrix_on_tp<shard<0>>& tokens, const std::vector<std::size_t>& sent) { route_rows(tokens, sent); }
