// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/group/local.hpp>

int ranks_of(const hocket::local::communicator& comm);

int ranks_of(const hocket::local::communicator& comm) { return comm.size(); }
