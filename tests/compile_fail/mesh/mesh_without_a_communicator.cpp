// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a mesh is made of a communicator
//
// Four of which ranks?
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

void make() { const auto made = hocket::mesh<"dp">(4); }
