// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: invariant data must become replicated first
//
// Each rank uses the parameter differently.
#include <shard/setting_with_domains.hpp>

auto own(const vector_on_tp<invariant>& parameter) { return convert<"tp", varying>(parameter); }
