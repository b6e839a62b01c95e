// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: only a tensor can be filled by a function of indices
//
// A part alone does not know where in the whole it is.
#include <shard/setting_with_domains.hpp>

#include <vector>

void clear(std::vector<float>& x) {
  fill(x, [](const auto&) { return 1.0F; });
}
