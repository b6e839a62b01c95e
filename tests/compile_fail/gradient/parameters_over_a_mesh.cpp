// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be a communicator, such as mesh.along
#include <hocket/hocket.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/optimizer/parameters.hpp>

void misuse(const hocket::rank_mesh<hocket::local::domain, "dp", "tp">& ranks, const hocket::parameter_layout& layout) {
  hocket::parameters<float>(ranks, layout, hocket::zero<3>);
}
