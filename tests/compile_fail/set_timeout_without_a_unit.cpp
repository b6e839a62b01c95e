// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: set_timeout.* takes a duration, for example 5s or 20ms
#include <hocket/hocket.hpp>

void misuse(hocket::local::communicator& comm) { comm.set_timeout(5); }
