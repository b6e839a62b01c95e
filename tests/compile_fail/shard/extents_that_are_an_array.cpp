// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the second argument of tensor<...> must be extents<...>
//
// The number of dimensions is part of the type, as extents<...>.
#include "setting.hpp"

using elements = tensor<float, std::array<int, 2>, ranks, on<"dp", replicated>, on<"tp", replicated>>;
auto made(const ranks& mesh) { return elements(mesh); }
