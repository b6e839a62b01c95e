// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// expect: this tensor has another placement than the one required here
//
// An assignment does not reduce.
#include "setting.hpp"

#include <utility>

void reduce(vector_on_tp<replicated>& to, vector_on_tp<partial<sum>>& from) { to = std::move(from); }
