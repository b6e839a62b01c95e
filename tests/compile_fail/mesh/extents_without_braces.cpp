// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the extents of a mesh go in braces
//
// The extents are two separate arguments.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto made(const hocket::communicator<hocket::local::domain>& comm) { return hocket::mesh<"dp", "tp">(comm, 2, 3); }
