// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Whether this build takes many times as long as one that is optimised: then grids are thinner, and no time is bounded.
#pragma once

namespace pipeline_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

}  // namespace pipeline_test
