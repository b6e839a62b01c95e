// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the mesh, pass the extents
//
// Negative numbers would become large ones.
#include <shard/setting_with_domains.hpp>

#include <array>

auto made(const ranks& mesh, const std::array<int, 1>& sizes) { return vector_on_tp<shard<0>>(mesh, sizes); }
