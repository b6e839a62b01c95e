// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The program's second source.
#pragma once

#include <hocket/group/local.hpp>
#if defined(EVERY_CALL_OVER_UCX)
#include <hocket/group/ucx.hpp>
#endif

namespace every_call {

/// Makes all calls with elements that the first source does not use. Returns the number of wrong results.
int count_wrong_in_second(const hocket::local::communicator& comm);
#if defined(EVERY_CALL_OVER_UCX)
int count_wrong_in_second(const hocket::ucx::communicator& comm);
#endif

}  // namespace every_call
