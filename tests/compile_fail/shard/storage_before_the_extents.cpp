// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the mesh, pass the extents
//
// The extents precede the storage.
#include <shard/setting_with_domains.hpp>

#include <vector>

auto made(const ranks& mesh, std::vector<float>& data) { return vector_on_tp<shard<0>>(mesh, data, {4}); }
