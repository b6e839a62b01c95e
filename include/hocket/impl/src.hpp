// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// With HOCKET_SEPARATE_COMPILATION, exactly one source of a program includes this header. It has the definitions that
/// other headers leave out, for ranks that are threads or simulated. If ranks are processes, one source also includes
/// <hocket/impl/src_ucx.hpp>. The CMake targets hocket::compiled and hocket::compiled_ucx do that.
#pragma once

#include <hocket/core/config.hpp>

#if !defined(HOCKET_SEPARATE_COMPILATION)
#error "hocket: <hocket/impl/src.hpp> is for programs whose sources are all compiled with -DHOCKET_SEPARATE_COMPILATION"
#endif

#include <hocket/core/impl/error.ipp>
#include <hocket/gradient/impl/accumulated_step.ipp>
#include <hocket/gradient/impl/buckets_in_flight.ipp>
#include <hocket/gradient/impl/data_parallel.ipp>
#include <hocket/gradient/impl/layout_agreement.ipp>
#include <hocket/gradient/impl/norm.ipp>
#include <hocket/gradient/impl/parameter_layout.ipp>
#include <hocket/group/impl/local.ipp>
#include <hocket/group/local.hpp>
#include <hocket/group/sim.hpp>
#include <hocket/impl/instantiate.hpp>
#include <hocket/optimizer/impl/optimizer_checks.ipp>
#include <hocket/transport/host/impl/link_measurement.ipp>
#include <hocket/transport/impl/link_costs_text.ipp>

HOCKET_DETAIL_INSTANTIATE(local::domain)
HOCKET_DETAIL_INSTANTIATE(sim::domain)
