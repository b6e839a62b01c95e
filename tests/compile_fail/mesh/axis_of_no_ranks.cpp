// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an axis must have at least one rank
//
// An extent that was computed, and is rounded down to nothing: not one that is given when the mesh is made.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

inline constexpr int ranks_of_a_node = 4;

auto arrange(const hocket::local::communicator& comm) {
  return hocket::mesh<hocket::axis("dp", ranks_of_a_node / 8), "tp">(comm, {2, 3});
}
