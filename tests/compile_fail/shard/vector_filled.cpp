// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only a tensor can be filled by a function of indices
//
// A vector does not specify its position in a whole tensor.
#include <shard/setting_with_domains.hpp>

#include <vector>

void clear(std::vector<float>& x) {
  fill(x, [](const auto&) { return 1.0F; });
}
