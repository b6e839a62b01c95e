// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: takes the colour of this rank's part
//
// The number could be a colour or a key.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { auto part = hocket::split(comm, comm.rank() % 2); }
