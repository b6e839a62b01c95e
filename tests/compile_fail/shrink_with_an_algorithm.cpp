// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: shrink accepts only timeout
//
// It is no collective of the ranks that there were.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { auto rest = hocket::shrink(comm, hocket::with(hocket::ring)); }
