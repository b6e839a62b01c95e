// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the mesh, pass the extents
//
// The size of a vector is not known at compile time, and its elements may be negative.
#include <shard/setting_with_domains.hpp>

#include <vector>

auto made(const ranks& mesh, const std::vector<int>& sizes) { return vector_on_tp<shard<0>>(mesh, sizes); }
