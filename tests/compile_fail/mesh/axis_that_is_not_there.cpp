// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this mesh has no axis of that name
//
// The name of the axis has a typing error.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

const auto& pipeline(const hocket::rank_mesh<hocket::local::domain, "dp", "tp">& ranks) { return ranks.along<"pp">(); }
