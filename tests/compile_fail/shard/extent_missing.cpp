// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an extent is missing: pass one for each dynamic extent of the tensor's type, in order
//
// The number of columns is not 0: nobody has said it.
#include "setting.hpp"

auto rows(const ranks& mesh) { return matrix_on_tp<shard<0>>(mesh, {64}); }
