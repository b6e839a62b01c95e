// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: must be a communicator, such as mesh.along
//
// The caller must choose the axes over which gradients are added.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/hocket.hpp>
#include <hocket/mesh/mesh.hpp>

void misuse(const hocket::rank_mesh<hocket::local::domain, "dp", "tp">& ranks, const hocket::parameter_layout& layout) {
  hocket::gradients<float>(ranks, layout, hocket::last_microbatch, hocket::zero<1>);
}
