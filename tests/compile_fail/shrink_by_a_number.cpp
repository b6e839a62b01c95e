// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: takes nothing but the communicator and options
//
// How many ranks are left is not the caller's to say.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { auto rest = hocket::shrink(comm, 3); }
