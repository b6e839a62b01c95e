// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: varying data are not parts of a whole, so they can't be moved to another mesh
//
// It is undefined which part the ranks of the other mesh would get.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/change_mesh.hpp>

using line = hocket::rank_mesh<hocket::local::domain, "fsdp">;
using stored = hocket::tensor<float, hocket::extents<hocket::dynamic>, line, hocket::on<"fsdp", hocket::shard<0>>>;

auto store(const hocket::tensor<float, hocket::extents<hocket::dynamic>, ranks, hocket::elsewhere<hocket::varying>>& x,
           const line& where) {
  return hocket::redistribute<stored>(x, where);
}
