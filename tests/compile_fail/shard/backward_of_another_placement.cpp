// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor does not have the placement that the conversion starts from
//
// The backward pass of an all_reduce gets the summands instead of the gradient of the sum.
#include <shard/setting_with_domains.hpp>

using reduce = conversion<"tp", partial<sum>, invariant>;

auto backward(const matrix_on_tp<partial<sum>>& gradient) { return backward_t<reduce>()(gradient); }
