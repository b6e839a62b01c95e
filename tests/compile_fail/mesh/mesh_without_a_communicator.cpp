// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: takes a communicator first, and then the number of ranks along each axis
//
// The communicator of the four ranks is missing.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

void make() { const auto made = hocket::mesh<"dp">(4); }
