// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion needs the name of the axis first
//
// The placement precedes the axis.
#include <shard/setting_with_domains.hpp>

void reduce(const vector_on_tp<partial<sum>>& x) { const auto reduced = convert<invariant, "tp">(x); }
