// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: operands are on different meshes: redistribute one of them
//
// Activations are on the mesh of the computation, parameters on the mesh that stores them.
#include "setting.hpp"

using storage = mesh_in_types<"fsdp">;

auto product(const matrix_on_tp<replicated>& x,
             const tensor<float, extents<dynamic, dynamic>, storage, on<"fsdp", replicated>>& w) {
  return apply(multilinear<"tk,kn->tn">(), compute, x, w);
}
