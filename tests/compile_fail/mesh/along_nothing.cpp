// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: along<...>\(\) needs the name of at least one axis
//
// all() returns the communicator of all ranks.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

const auto& everybody(const hocket::rank_mesh<hocket::local::domain, "dp", "tp">& ranks) { return ranks.along<>(); }
