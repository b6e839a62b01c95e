// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The loops of the element kernels, written plainly. Always compiled with -O3, as the reference for the cost of a
// kernel.
#include "element_kernel_o3.hpp"

namespace plain {

void combine_two(std::plus<>, float* to, const float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void combine_two(std::plus<>, double* to, const double* a, const double* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void combine_two(std::plus<>, std::int32_t* to, const std::int32_t* a, const std::int32_t* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

void combine_two(hocket::minimum smaller, float* to, const float* a, const float* b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = smaller(a[i], b[i]);
}

void add_four(float* to, const float* a, const float* b, const float* c, const float* d, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i] + c[i] + d[i];
}

void minimum_of_four(float* to, const float* a, const float* b, const float* c, const float* d, std::size_t count) {
  constexpr hocket::minimum smaller;
  for (std::size_t i = 0; i < count; ++i) to[i] = smaller(smaller(smaller(a[i], b[i]), c[i]), d[i]);
}

void add_four(std::uint8_t* to, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
              const std::uint8_t* d, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<std::uint8_t>(a[i] + b[i] + c[i] + d[i]);
}

}  // namespace plain
