// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The compiler proves plans over peer pointers. They are in a separate file to bound the compiler's memory.
#include "plan/every_plan.hpp"

#include <hocket/plan/prove.hpp>

namespace plan = hocket::plan;
using plan::prove;

static_assert(prove(plan::one_shot{}, 16));
static_assert(prove(plan::two_shot{}, 16));
static_assert(prove(plan::push_all_reduce{}, 16));
static_assert(prove(plan::direct_reduce_scatter{}, 16));
static_assert(prove(plan::direct_all_gather{}, 16));
static_assert(prove(plan::direct_all_to_all{}, 16));
static_assert(prove(plan::direct_broadcast{3}, 16));
