// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor's extents go in braces
//
// Rows and columns, one after the other.
#include "setting.hpp"

auto made(const ranks& mesh) { return matrix_on_tp<shard<0>>(mesh, 3, 2); }
