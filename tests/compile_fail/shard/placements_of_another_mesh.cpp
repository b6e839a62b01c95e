// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor has one placement for each axis of its mesh
//
// There is one placement for two axes.
#include "setting.hpp"

auto size(const sharded_tensor<float, extents<dynamic>, ranks, placements<replicated>>& x) {
  return x.elements().size();
}
