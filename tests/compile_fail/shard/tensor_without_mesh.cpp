// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the third argument of tensor<...> must be the type of a mesh
//
// The placements directly follow the extents; the mesh is missing.
#include <shard/setting_with_domains.hpp>

using placed = hocket::tensor<float, hocket::extents<4>, hocket::on<"tp", invariant>>;

auto elements(const placed& x) { return x.elements(); }
