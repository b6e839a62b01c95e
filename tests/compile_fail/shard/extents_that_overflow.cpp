// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: its bytes can't be counted
//
// The product of both is 2^80, which std::size_t would wrap to 0, so that the tensor would have no storage.
#include "setting.hpp"

inline constexpr auto many = std::size_t{1} << 40U;

auto made(const ranks& mesh) {
  return tensor<float, extents<many, many>, ranks, on<"dp", replicated>, on<"tp", replicated>>(mesh);
}
