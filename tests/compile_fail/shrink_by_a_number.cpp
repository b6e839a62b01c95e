// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the options must be made by with
//
// The caller can't choose how many ranks survive.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { auto rest = hocket::shrink(comm, 3); }
