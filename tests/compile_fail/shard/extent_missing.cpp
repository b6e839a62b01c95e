// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an extent is missing: pass one for each dynamic extent of the tensor's type, in order
//
// The number of columns is missing; it does not default to 0.
#include "setting.hpp"

auto rows(const ranks& mesh) { return matrix_on_tp<shard<0>>(mesh, {64}); }
