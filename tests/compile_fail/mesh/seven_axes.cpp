// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mesh must have 1 to 6 axes
//
// It has a communicator along every product of axes: 128 of them.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto arrange(const hocket::local::communicator& comm) {
  return hocket::mesh<"pod", "pp", "dp", "fsdp", "cp", "ep", "tp">(comm, {1, 1, 1, 1, 1, 1, 1});
}
