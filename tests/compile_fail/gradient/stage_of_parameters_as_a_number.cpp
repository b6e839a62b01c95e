// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: parameters.....: the sharding stage must be zero<0>, zero<1>, zero<2> or zero<3>
#include <hocket/hocket.hpp>
#include <hocket/optimizer/parameters.hpp>

void misuse(const hocket::local::communicator& comm, const hocket::parameter_layout& layout) {
  hocket::parameters<float>(comm, layout, 1);
}
