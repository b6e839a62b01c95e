// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a norm takes tensors, whose types state which elements are copies
//
// The elements do not specify whether other ranks have copies of them.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

double norm_of(const matrix_on_tp<shard<0>>& g) { return norm(g.elements()); }
