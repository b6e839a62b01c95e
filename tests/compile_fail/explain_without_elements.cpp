// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: explain<T>\(...\) needs the type of the elements
//
// The size of an element is unknown.
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm) { hocket::explain(comm, hocket::all_reduce, 100); }
