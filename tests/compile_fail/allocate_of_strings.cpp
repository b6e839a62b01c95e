// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: T must be trivially copyable
//
// Another rank would read the pointer in the string.
#include <hocket/group/allocate.hpp>
#include <hocket/group/local.hpp>

#include <string>

void misuse(const hocket::local::communicator& comm) { auto names = hocket::allocate<std::string>(comm, 4); }
