// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the norm of partial results is not the norm of the whole
//
// The gradient must be reduced along dp before it is clipped.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

double clip(const vector_of<on<"dp", partial<sum>>, on<"tp", shard<0>>>& gradient) { return norm(gradient); }
