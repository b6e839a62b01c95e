// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of the leaves, written down plainly. Compiled with -O3, whatever the rest is compiled with: what a leaf costs
// is compared with this.
#include "leaf_o3.hpp"

namespace plain {

void add_two(float* to, const float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void add_two(double* to, const double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void add_two(std::int32_t* to, const std::int32_t* a, const std::int32_t* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void add_four(float* to, const float* a, const float* b, const float* c, const float* d, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i] + c[i] + d[i];
}

}  // namespace plain
