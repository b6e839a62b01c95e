// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops of the leaves, written down plainly: see leaf_o3.cxx, used by leaf.cxx.
#pragma once

#include <cstddef>
#include <cstdint>

namespace plain {

void add_two(float* to, const float* a, const float* b, std::size_t count);
void add_two(double* to, const double* a, const double* b, std::size_t count);
void add_two(std::int32_t* to, const std::int32_t* a, const std::int32_t* b, std::size_t count);
void add_four(float* to, const float* a, const float* b, const float* c, const float* d, std::size_t count);

}  // namespace plain
