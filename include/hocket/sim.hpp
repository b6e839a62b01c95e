// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Umbrella header for simulated ranks: <hocket/hocket.hpp> with thousands of ranks on one thread, in virtual time.
#pragma once

#include <hocket/engine/simulate.hpp>
#include <hocket/group/sim.hpp>
#include <hocket/hocket.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/price.hpp>
