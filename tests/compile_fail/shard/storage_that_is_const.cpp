// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor's storage must be a contiguous range of the tensor's element type, writable unless
//
// The elements of the tensor would be writable.
#include <shard/setting.hpp>

auto f(const ranks& mesh, std::span<const float> values) { return vector_on_tp<shard<0>>(mesh, {10}, values); }
