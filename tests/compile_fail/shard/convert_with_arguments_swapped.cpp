// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: a conversion needs the name of the axis first
//
// The placement must follow the axis.
#include <shard/setting_with_domains.hpp>

auto moved(const matrix_on_tp<invariant>& x) { return convert<replicated, "tp">(x); }
