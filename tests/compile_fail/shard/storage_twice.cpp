// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the mesh, pass the extents
//
// The extents are missing.
#include <shard/setting_with_domains.hpp>

#include <span>

auto made(const ranks& mesh, std::span<float> data) { return vector_on_tp<shard<0>>(mesh, data, data); }
