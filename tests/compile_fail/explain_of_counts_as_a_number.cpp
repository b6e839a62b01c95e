// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: pass the lengths of the ranks.? blocks after the collective
//
// One number does not say how long the blocks of the ranks are.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { hocket::explain<float>(comm, hocket::all_gather_v, 100); }
