// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: invariant data must become replicated first
//
// A bias is added to a partial sum, but its gradients are not summed.
#include <shard/setting_with_domains.hpp>

auto summand(const vector_on_tp<invariant>& bias) { return convert<"tp", partial<sum>>(bias); }
