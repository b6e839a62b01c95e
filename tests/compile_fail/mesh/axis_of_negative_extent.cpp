// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an axis must have at least one rank
//
// `inferred` is valid only among the extents that are passed to mesh().
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto arrange(const hocket::local::communicator& comm) {
  return hocket::mesh<hocket::axis("dp", -1), hocket::axis("tp", 4)>(comm, {});
}
