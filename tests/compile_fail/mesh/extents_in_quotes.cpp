// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mesh is made of a communicator
//
// As from a command line.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto made(const hocket::communicator<hocket::local::domain>& comm) { return hocket::mesh<"dp">(comm, "4"); }
