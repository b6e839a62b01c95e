// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only partial<sum> can be differentiated
//
// A maximum can be reduced in the forward pass, but has no backward pass.
#include <shard/setting_with_domains.hpp>

using reduce = conversion<"tp", partial<maximum>, invariant>;

auto backward(const matrix_on_tp<invariant>& gradient) { return backward_t<reduce>()(gradient); }
