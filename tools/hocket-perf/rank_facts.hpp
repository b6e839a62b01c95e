// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
#pragma once

#include <array>
#include <cstdint>

namespace perf {

/// Where a rank runs.
struct rank_facts {
  std::int64_t process = 0;
  std::int32_t core = 0;  ///< at the start; fixed if the rank is pinned
  std::int32_t usable_cores = 1;
  std::array<char, 64> host{};
};

}  // namespace perf
