// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion changes the placement along one axis, which is named without
//
// The result would depend on the order of the two conversions.
#include <shard/setting_with_domains.hpp>

auto whole(const vector_of<on<"dp", partial<sum>>, on<"tp", shard<0>>>& x) {
  return convert<"dp", replicated, "tp", replicated>(x);
}
