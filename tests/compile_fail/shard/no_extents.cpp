// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an extent is missing: pass one for each dynamic extent of the tensor's type, in order
//
// The number of elements is missing.
#include "setting.hpp"

auto elements(const ranks& mesh) { return vector_on_tp<shard<0>>(mesh); }
