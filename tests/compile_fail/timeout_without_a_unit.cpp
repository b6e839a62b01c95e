// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: takes a duration, for example 5s or 20ms
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { hocket::barrier(comm, hocket::with(hocket::timeout(5))); }
