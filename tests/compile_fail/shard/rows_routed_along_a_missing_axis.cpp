// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The experts' axis is usually ep, which this mesh does not have.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/row_exchange.hpp>

auto route(const matrix_on_tp<shard<0>>& tokens) { return route_rows<"ep">(tokens, {1, 2}); }
