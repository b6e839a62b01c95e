// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this call takes only a timeout
//
// shrink is not a collective of all ranks of the communicator, and has no algorithms.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { auto rest = hocket::shrink(comm, hocket::with(hocket::ring)); }
