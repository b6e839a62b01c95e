// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names for the misuses in this folder: tensors on the mesh `ranks`, which the including file declares.
#pragma once

#include <cstddef>

namespace shard_misuse {

using namespace hocket;

template <class... Placed>
using vector_of = tensor<float, extents<dynamic>, ranks, Placed...>;
template <class... Placed>
using matrix_of = tensor<float, extents<dynamic, dynamic>, ranks, Placed...>;

// Placed along tp, replicated along dp.
template <class Placement>
using vector_on_tp = vector_of<on<"dp", replicated>, on<"tp", Placement>>;
template <class Placement>
using matrix_on_tp = matrix_of<on<"dp", replicated>, on<"tp", Placement>>;

// Stands for any local function: the misuses depend only on the rule that is passed with it.
inline constexpr auto compute = [](const auto&...) {};

}  // namespace shard_misuse

using namespace shard_misuse;
