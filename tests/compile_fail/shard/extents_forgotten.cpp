// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the second argument of tensor<...> must be extents<...>
//
// One error, though the mesh and what follows stand in the place of others.
#include <shard/setting_with_domains.hpp>

using elements = tensor<float, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;
auto* made(const ranks& mesh) { return new elements(mesh); }
