// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the view and the tensor have different numbers of dimensions
//
// A matrix of the caller's, for a vector.
#include "setting.hpp"

auto adopt(const ranks& mesh, array_view<float, 2> matrix) { return vector_on_tp<replicated>(mesh, {8}, matrix); }
