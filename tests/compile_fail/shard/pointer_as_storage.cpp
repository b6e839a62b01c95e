// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a pointer does not state the number of elements: pass std::span\(data, count\)
//
// The size of the caller's storage is unknown.
#include "setting.hpp"

auto adopt(const ranks& mesh, float* data) { return vector_on_tp<shard<0>>(mesh, {64}, data); }
