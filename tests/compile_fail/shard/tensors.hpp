// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names for the misuses next to this file: tensors over the mesh `ranks`, which the including file declares.
#pragma once

#include <cstddef>

namespace shard_misuse {

using namespace hocket;

template <class... Placed>
using vector_of = tensor<float, extents<dynamic>, ranks, Placed...>;
template <class... Placed>
using matrix_of = tensor<float, extents<dynamic, dynamic>, ranks, Placed...>;

// Placed along tp; every dp has a copy.
template <class Placement>
using vector_on_tp = vector_of<on<"dp", replicated>, on<"tp", Placement>>;
template <class Placement>
using matrix_on_tp = matrix_of<on<"dp", replicated>, on<"tp", Placement>>;

// Local mathematics: here it matters only which rule it is said to follow.
inline constexpr auto compute = [](const auto&...) {};

}  // namespace shard_misuse

using namespace shard_misuse;
