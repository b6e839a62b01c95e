// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: route_rows and its exchanges take a tensor
//
// The tokens are in a vector.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

#include <vector>

void route(const std::vector<float>& tokens) { route_rows<"tp">(tokens, {1, 2}); }
