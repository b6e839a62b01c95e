// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: use of deleted function|call to deleted constructor
//
// The compiler shows the line which states that the mesh is the first argument.
#include <shard/setting_with_domains.hpp>

auto make(const ranks& mesh) { return matrix_on_tp<invariant>({3, 4}, mesh); }
