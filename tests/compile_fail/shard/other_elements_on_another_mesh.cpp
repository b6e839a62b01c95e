// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor on the other mesh must have the same element type and extents
//
// A redistribution to another mesh does not round elements.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/change_mesh.hpp>

using line = hocket::rank_mesh<hocket::local::domain, "fsdp">;
using halved = hocket::tensor<float, hocket::extents<hocket::dynamic>, line, hocket::on<"fsdp", hocket::shard<0>>>;

auto store(
    const hocket::tensor<double, hocket::extents<hocket::dynamic>, ranks, hocket::elsewhere<hocket::invariant>>& x,
    const line& where) {
  return hocket::redistribute<halved>(x, where);
}
