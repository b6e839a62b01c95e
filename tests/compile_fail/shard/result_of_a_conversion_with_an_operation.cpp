// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the tensor, a conversion takes only options
//
// all_reduce takes an operation; convert does not.
#include <shard/setting_with_domains.hpp>

#include <functional>

void reduce(const vector_on_tp<partial<sum>>& x) { auto reduced = convert<"tp", replicated>(x, std::plus<>()); }
