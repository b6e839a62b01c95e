// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor's storage is a contiguous range of the tensor's own element type, which can be written
//
// The tensor could be written to.
#include <shard/setting.hpp>

auto f(const ranks& mesh, std::span<const float> values) { return vector_on_tp<shard<0>>(mesh, {10}, values); }
