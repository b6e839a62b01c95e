// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Must not link with header_only.cpp: the two use different functions, which the linker reports as undefined.
#define HOCKET_SEPARATE_COMPILATION

#include <hocket/group/local.hpp>

#include <memory>

int ranks_of(const hocket::local::communicator& comm);

int main() {
  const auto comm = hocket::local::connect(std::make_shared<hocket::local::world>(1), 0);
  return ranks_of(comm) - 1;
}
