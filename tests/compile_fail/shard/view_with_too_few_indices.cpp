// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a view takes as many indices as it has dimensions
//
// One index can't select a row of a matrix.
#include <shard/setting_with_domains.hpp>

float first(const matrix_on_tp<invariant>& x) { return x.local()(0); }
