// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the norm of partial results is not the norm of the whole
//
// The gradient was averaged on each rank, but not over the ranks.
#include <shard/setting_with_domains.hpp>

#include <hocket/shard/norm.hpp>

double clip(const vector_of<on<"dp", partial<mean>>, on<"tp", shard<0>>>& gradient) { return norm(gradient); }
