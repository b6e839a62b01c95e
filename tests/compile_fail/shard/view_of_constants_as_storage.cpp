// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the view's elements are constant or of another type, and those of the tensor are not
//
// Parameters that are only read.
#include "setting.hpp"

auto adopt(const ranks& mesh, array_view<const float, 2> view) { return matrix_on_tp<shard<0>>(mesh, {3, 4}, view); }
