// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The mesh has no axis for pipeline stages.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

int stage(const hocket::rank_mesh<hocket::local::domain, "dp", "tp">& ranks) { return ranks.coordinate<"stages">(); }
