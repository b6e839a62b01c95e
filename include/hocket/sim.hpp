// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The door to simulated ranks: all of <hocket/hocket.hpp>, thousands of ranks on one thread, virtual time.
#pragma once

#include <hocket/engine/simulate.hpp>
#include <hocket/group/sim.hpp>
#include <hocket/hocket.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/price.hpp>
