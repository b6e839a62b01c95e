// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mesh must have 1 to 6 axes
//
// A mesh must have at least one axis.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto arrange(const hocket::local::communicator& comm) { return hocket::mesh<>(comm, {}); }
