// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: an extent must be an integer
//
// An extent can't be 4.5.
#include <shard/setting_with_domains.hpp>

auto made(const ranks& mesh) { return vector_on_tp<shard<0>>(mesh, {4.5}); }
