// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an extent too many: give one for each extent of the tensor's type that is dynamic
//
// The type has the number of columns already.
#include "setting.hpp"

using rows_of_1000 = tensor<float, extents<dynamic, 1000>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;

auto rows(const ranks& mesh) { return rows_of_1000(mesh, {64, 1000}); }
