// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: too many extents: pass one for each dynamic extent of the tensor's type
//
// The type already specifies the number of columns.
#include "setting.hpp"

using rows_of_1000 = tensor<float, extents<dynamic, 1000>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;

auto rows(const ranks& mesh) { return rows_of_1000(mesh, {64, 1000}); }
