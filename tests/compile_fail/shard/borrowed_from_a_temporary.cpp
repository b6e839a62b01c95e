// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the storage of a temporary tensor ends before the borrowed tensor can be used: give the tensor a name
//
// The copy is destroyed at the end of the expression.
#include "setting.hpp"

auto kept(const vector_on_tp<shard<0>>& x) { return borrow(copy(x)); }
