// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: replicated data can't become invariant, not even on another mesh
//
// A redistribution to another mesh does not add the gradients either.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/change_mesh.hpp>

using line = hocket::rank_mesh<hocket::local::domain, "fsdp">;
using same = hocket::tensor<float, hocket::extents<hocket::dynamic>, line, hocket::on<"fsdp", hocket::invariant>>;

auto store(
    const hocket::tensor<float, hocket::extents<hocket::dynamic>, ranks, hocket::elsewhere<hocket::replicated>>& x,
    const line& where) {
  return hocket::redistribute<same>(x, where);
}
