// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a bias, the rows that it is added to, and their gradient must be tensors
//
// A vector has no placement.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/layer/linear.hpp>

#include <vector>

void add(const std::vector<float>& of_output) { auto gradient = bias_gradient(of_output); }
