// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor is not moved to another mesh implicitly
//
// On another mesh, other ranks have the parts of the tensor.
#include "setting.hpp"

#include <utility>

using other_ranks = mesh_in_types<"dp", "ep">;

void move_it(tensor<float, extents<dynamic>, other_ranks, elsewhere<replicated>>& to, vector_on_tp<replicated>& from) {
  to = std::move(from);
}
