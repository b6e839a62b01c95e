// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: two axes of this mesh have the same name
//
// along<"dp">() would be ambiguous.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto arrange(const hocket::local::communicator& comm) { return hocket::mesh<"dp", "dp">(comm, {2, 4}); }
