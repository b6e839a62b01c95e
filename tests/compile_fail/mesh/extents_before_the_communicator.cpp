// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mesh is made of a communicator
//
// The communicator comes first.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto made(const hocket::communicator<hocket::local::domain>& comm) { return hocket::mesh<"dp">({4}, comm); }
