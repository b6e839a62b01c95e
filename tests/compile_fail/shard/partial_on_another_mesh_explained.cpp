// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor can't become partial on another mesh: make it replicated there, and then partial
//
// A redistribution that does not compile has no plan.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/change_mesh.hpp>

using line = hocket::rank_mesh<hocket::local::domain, "fsdp">;
using summed =
    hocket::tensor<float, hocket::extents<hocket::dynamic>, line, hocket::on<"fsdp", hocket::partial<hocket::sum>>>;

auto shown(
    const hocket::tensor<float, hocket::extents<hocket::dynamic>, ranks, hocket::elsewhere<hocket::replicated>>& x,
    const line& where) {
  return hocket::explain_redistribution<summed>(x, where);
}
