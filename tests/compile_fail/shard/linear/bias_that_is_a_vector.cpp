// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a bias, the rows that it is added to, and their gradient must be tensors
//
// A vector has no placement.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

#include <vector>

void add(const matrix_on_tp<shard<1>>& x, const std::vector<float>& bias) { auto shifted = plus_bias(x, bias); }
