// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a norm takes tensors, whose types state which elements are copies
//
// No tensor, and so no mesh whose ranks could agree on a norm.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

#include <tuple>

double norm_of_none() { return norm(std::tie()); }
