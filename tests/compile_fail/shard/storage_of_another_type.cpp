// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor's storage must be a contiguous range of the tensor's element type
//
// Elements are not converted in place.
#include <shard/setting.hpp>

auto f(const ranks& mesh, std::vector<double>& values) { return vector_on_tp<shard<0>>(mesh, {10}, values); }
