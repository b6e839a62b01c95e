// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensors are on different meshes: call squared_norm for each mesh
//
// Gradients of experts are distributed over other axes than dense gradients.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

using expert_ranks = rank_mesh<hocket::local::domain, "edp", "ep">;

double clip(const vector_on_tp<invariant>& dense,
            const tensor<float, extents<dynamic>, expert_ranks, on<"edp", invariant>, on<"ep", shard<0>>>& of_expert) {
  return norm(dense, of_expert);
}
