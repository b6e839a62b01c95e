// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor's extents go in braces
//
// The two extents are separate arguments.
#include "setting.hpp"

auto made(const ranks& mesh) { return matrix_on_tp<shard<0>>(mesh, 3, 2); }
