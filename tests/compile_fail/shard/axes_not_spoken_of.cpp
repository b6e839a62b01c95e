// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has no placement along an axis of its mesh
//
// A type without placements, on three axes, causes one error, not three.
#include "setting.hpp"

using three_axes = mesh_in_types<"dp", "pp", "tp">;

void train(const three_axes& mesh) { const tensor<double, extents<dynamic>, three_axes> x(mesh, {3}); }
