// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Umbrella header for the host: collectives, with threads as ranks. For processes as ranks, include <hocket/ucx.hpp>;
/// for thousands of simulated ranks, <hocket/sim.hpp>. Separate headers prove, price and draw plans:
/// <hocket/plan/prove.hpp>, <hocket/plan/price.hpp>, <hocket/draw/plan_text.hpp> and <hocket/draw/plan_svg.hpp>.
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/explain.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/collective/scatter_v.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/collective/send_recv.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/wait.hpp>
#include <hocket/engine/flight_record.hpp>
#include <hocket/group/local.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/scalar/scalar.hpp>
#include <hocket/selection/algorithm.hpp>
