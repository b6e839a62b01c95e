// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops of the element kernels, written plainly: see element_kernel_o3.cpp, used by element_kernel.cpp.
#pragma once

#include <hocket/operation/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>

namespace plain {

void combine_two(std::plus<>, float* to, const float* a, const float* b, std::size_t count);
void combine_two(std::plus<>, double* to, const double* a, const double* b, std::size_t count);
void combine_two(std::plus<>, std::int32_t* to, const std::int32_t* a, const std::int32_t* b, std::size_t count);
void combine_two(hocket::minimum, float* to, const float* a, const float* b, std::size_t count);
void add_four(float* to, const float* a, const float* b, const float* c, const float* d, std::size_t count);
void minimum_of_four(float* to, const float* a, const float* b, const float* c, const float* d, std::size_t count);
void add_four(std::uint8_t* to, const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* c,
              const std::uint8_t* d, std::size_t count);

}  // namespace plain
