// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only partial<sum> can be differentiated
//
// A maximum is reduced forward, and has no way back.
#include <shard/setting_with_domains.hpp>

using reduce = conversion<"tp", partial<maximum>, invariant>;

auto backward(const matrix_on_tp<invariant>& gradient) { return backward_t<reduce>()(gradient); }
