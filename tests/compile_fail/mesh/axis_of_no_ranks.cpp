// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an axis must have at least one rank
//
// The extent in the axis is computed and rounded down to 0; it is not among those passed to mesh().
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

inline constexpr int ranks_of_a_node = 4;

auto arrange(const hocket::local::communicator& comm) {
  return hocket::mesh<hocket::axis("dp", ranks_of_a_node / 8), "tp">(comm, {2, 3});
}
