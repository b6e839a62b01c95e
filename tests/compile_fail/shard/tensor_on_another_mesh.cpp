// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor must be made on a mesh of the type
//
// A tensor of the dense layers is made on the mesh of the experts.
#include <shard/setting_with_domains.hpp>

using expert_ranks = hocket::rank_mesh<hocket::local::domain, "ep">;

auto made(const expert_ranks& mesh) { return vector_on_tp<shard<0>>(mesh, {4}); }
