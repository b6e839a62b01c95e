// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the mesh, pass the extents
//
// The type specifies all extents; the argument for the dynamic ones must be {}.
#include <shard/setting_with_domains.hpp>

#include <vector>

using fixed = tensor<float, extents<4>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;
auto made(const ranks& mesh, std::vector<float>& data) { return fixed(mesh, data); }
