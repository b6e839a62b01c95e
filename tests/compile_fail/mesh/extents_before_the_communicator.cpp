// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: takes a communicator first, and then the number of ranks along each axis
//
// The communicator must be the first argument.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto made(const hocket::communicator<hocket::local::domain>& comm) { return hocket::mesh<"dp">({4}, comm); }
