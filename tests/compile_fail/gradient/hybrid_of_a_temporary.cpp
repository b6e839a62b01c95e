// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: use of deleted function|call to deleted function
//
// The group would be destroyed before the first step.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  static_cast<void>(layout);
  hocket::hybrid(hocket::split(comm, hocket::color{0}, hocket::key{0}), comm);
}
