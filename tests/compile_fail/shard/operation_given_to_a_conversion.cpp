// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: after the tensor, a conversion takes only options, as in with
//
// The placement already specifies how partial results are combined.
#include <shard/setting_with_domains.hpp>

#include <functional>

auto summed(const vector_on_tp<partial<sum>>& x) { return convert<"tp", replicated>(x, std::plus<>{}); }
