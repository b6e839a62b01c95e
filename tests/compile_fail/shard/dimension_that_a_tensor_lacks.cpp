// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor has no dimension d to cut for shard<d>
//
// Dimensions are counted from 0, and a bias has one dimension.
#include "setting.hpp"

auto size(const vector_on_tp<shard<1>>& bias) { return bias.elements().size(); }
