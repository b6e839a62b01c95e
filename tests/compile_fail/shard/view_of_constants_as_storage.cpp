// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the view's elements are const or have another type than the tensor's elements
//
// The view refers to const parameters.
#include "setting.hpp"

auto adopt(const ranks& mesh, array_view<const float, 2> view) { return matrix_on_tp<shard<0>>(mesh, {3, 4}, view); }
