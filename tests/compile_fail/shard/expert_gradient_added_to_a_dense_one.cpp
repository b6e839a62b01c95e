// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a gradient on another mesh can't be added
//
// Experts' gradients are summed over fewer ranks, on a mesh of their own, and scaled there.
#include "setting.hpp"

using expert_ranks = mesh_in_types<"edp", "ep">;

void add(vector_on_tp<invariant>& total, const tensor<float, extents<dynamic>, expert_ranks, elsewhere<invariant>>& g) {
  accumulate(total, g);
}
