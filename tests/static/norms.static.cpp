// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The norm of a tensor calls the overload for tensors, also if the header for norms of bucketed gradients is included.
#include <hocket/gradient/norm.hpp>
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/norm.hpp>

#include <type_traits>
#include <utility>

using mesh_type = hocket::rank_mesh<hocket::local::domain, "tp">;
using slices = hocket::tensor<double, hocket::extents<4>, mesh_type, hocket::on<"tp", hocket::shard<0>>>;

static_assert(std::is_same_v<decltype(hocket::norm(std::declval<slices&>())), double>);
static_assert(std::is_same_v<decltype(hocket::norm(std::declval<const slices&>())), double>);
static_assert(std::is_same_v<decltype(hocket::norm(std::declval<slices&>(), std::declval<slices&>())), double>);
