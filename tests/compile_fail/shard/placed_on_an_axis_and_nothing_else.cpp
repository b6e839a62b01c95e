// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the axis must be followed by a placement
//
// The placement along the axis is missing.
#include <shard/setting_with_domains.hpp>

using placed = hocket::tensor<float, hocket::extents<4>, ranks, hocket::on<"tp">, hocket::elsewhere<invariant>>;

auto elements(const placed& x) { return x.elements(); }
