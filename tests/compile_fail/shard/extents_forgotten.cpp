// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: the second argument of tensor<...> must be extents<...>
//
// There is one error, although the mesh and the placements are in the wrong positions too.
#include <shard/setting_with_domains.hpp>

using elements = tensor<float, ranks, on<"dp", replicated>, on<"tp", shard<0>>>;
auto* made(const ranks& mesh) { return new elements(mesh); }
