// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a tensor must be made on a mesh of the type
//
// A communicator has no axes.
#include <shard/setting_with_domains.hpp>

using fixed = tensor<float, extents<4>, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;
auto made(const communicator<local::domain>& comm) { return fixed(comm); }
