// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: use of deleted function|call to deleted constructor
//
// The compiler shows the line which states the arguments of a tensor.
#include <shard/setting_with_domains.hpp>

auto make() { return vector_on_tp<invariant>(); }
