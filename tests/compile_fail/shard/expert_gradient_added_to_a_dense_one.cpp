// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a gradient on another mesh can't be added
//
// Gradients of experts are summed and scaled over fewer ranks, on a separate mesh.
#include "setting.hpp"

using expert_ranks = mesh_in_types<"edp", "ep">;

void add(vector_on_tp<invariant>& total, const tensor<float, extents<dynamic>, expert_ranks, elsewhere<invariant>>& g) {
  accumulate(total, g);
}
