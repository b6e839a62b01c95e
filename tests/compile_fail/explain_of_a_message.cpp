// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: explain\(...\) takes a collective after the communicator
//
// A message has no algorithms.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { hocket::explain<float>(comm, hocket::send, 100); }
