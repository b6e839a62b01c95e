// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// True if this build is much slower than an optimised build: tests then use thinner grids and do not bound times.
#pragma once

namespace pipeline_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
constexpr bool slow = true;
#else
constexpr bool slow = false;
#endif

}  // namespace pipeline_test
