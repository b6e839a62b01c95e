// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the tensor, a redistribution to another mesh takes that mesh
//
// The mesh passed is that of the tensor, not that of the target type.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/change_mesh.hpp>

using there = tensor<float, extents<dynamic>, hocket::rank_mesh<hocket::local::domain, "ep">, on<"ep", shard<0>>>;
auto shown(const vector_on_tp<shard<0>>& x, const ranks& mesh) { return explain_redistribution<there>(x, mesh); }
