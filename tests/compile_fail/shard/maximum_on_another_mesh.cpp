// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor can't become partial on another mesh
//
// All ranks except one would need the smallest number of the type.
#include <shard/setting_with_domains.hpp>

#include <hocket/operation/operations.hpp>
#include <hocket/shard/change_mesh.hpp>

using line = hocket::rank_mesh<hocket::local::domain, "fsdp">;
using stored =
    hocket::tensor<float, hocket::extents<hocket::dynamic>, line, hocket::on<"fsdp", hocket::partial<hocket::maximum>>>;

using whole = hocket::tensor<float, hocket::extents<hocket::dynamic>, ranks, hocket::elsewhere<hocket::replicated>>;

auto store(const whole& x, const line& where) { return hocket::redistribute<stored>(x, where); }
