// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the tensor on the other mesh must have the same element type and extents
//
// The two types specify different extents.
#include <shard/setting_with_domains.hpp>

#include <hocket/operation/operations.hpp>
#include <hocket/shard/change_mesh.hpp>

using line = hocket::rank_mesh<hocket::local::domain, "fsdp">;
using stored = hocket::tensor<float, hocket::extents<5>, line, hocket::on<"fsdp", hocket::shard<0>>>;

using whole = hocket::tensor<float, hocket::extents<4>, ranks, hocket::elsewhere<hocket::replicated>>;

auto store(const whole& x, const line& where) { return hocket::redistribute<stored>(x, where); }
