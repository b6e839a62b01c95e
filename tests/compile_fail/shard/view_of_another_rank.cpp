// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the view and the tensor have different numbers of dimensions
//
// The caller's view is a matrix, the tensor a vector.
#include "setting.hpp"

auto adopt(const ranks& mesh, array_view<float, 2> matrix) { return vector_on_tp<replicated>(mesh, {8}, matrix); }
