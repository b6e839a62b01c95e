// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: use of deleted function|call to deleted constructor
//
// The compiler shows the line that says what a tensor is made on.
#include <shard/setting_with_domains.hpp>

auto make() { return vector_on_tp<invariant>(); }
