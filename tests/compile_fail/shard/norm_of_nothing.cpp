// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a norm takes tensors, whose types state which elements are copies
//
// Without a tensor, there is no mesh over whose ranks the norm is computed.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

#include <tuple>

double norm_of_none() { return norm(std::tie()); }
