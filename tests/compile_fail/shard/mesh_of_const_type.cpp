// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the third argument of tensor<...> must be the type of a mesh, without const or reference
//
// The decltype of a const reference is not the type of a mesh.
#include "setting.hpp"

void train(const ranks& mesh, const tensor<float, extents<dynamic>, decltype(mesh), elsewhere<replicated>>& x);
