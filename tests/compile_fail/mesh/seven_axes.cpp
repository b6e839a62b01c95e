// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mesh must have 1 to 6 axes
//
// A mesh has a communicator for every subset of its axes, which would be 128.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto arrange(const hocket::local::communicator& comm) {
  return hocket::mesh<"pod", "pp", "dp", "fsdp", "cp", "ep", "tp">(comm, {1, 1, 1, 1, 1, 1, 1});
}
