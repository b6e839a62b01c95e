// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: elements must be trivially copyable
//
// The bytes of a string object do not contain its value.
#include <hocket/hocket.hpp>

#include <vector>

#include <string>

void misuse(const hocket::local::communicator& comm, const std::vector<float>& in, std::vector<float>& out) {
  static_cast<void>(in);
  static_cast<void>(out);
  std::vector<std::string> words(3);
  std::vector<std::string> joined(3);
  hocket::all_reduce(comm, words, joined);
}
