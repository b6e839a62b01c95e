// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the name of an axis must have 1 to 15 characters
//
// The name is empty.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>

auto arrange(const hocket::local::communicator& comm) { return hocket::mesh<"", "tp">(comm, {2, 4}); }
