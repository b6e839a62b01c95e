// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// With HOCKET_SEPARATE_COMPILATION, exactly one source of a program includes this, and nothing else that defines it: it has the
/// definitions of all that other headers only declare, for ranks that are threads or simulated. Where ranks are processes,
/// that source includes <hocket/impl/src_ucx.hpp> too. The CMake targets hocket::compiled and hocket::compiled_ucx have such
/// sources.
#pragma once

#include <hocket/core/config.hpp>

#if !defined(HOCKET_SEPARATE_COMPILATION)
#error "hocket: <hocket/impl/src.hpp> is for programs whose sources are all compiled with -DHOCKET_SEPARATE_COMPILATION"
#endif

#include <hocket/core/impl/error.ipp>
#include <hocket/group/impl/local.ipp>
#include <hocket/group/local.hpp>
#include <hocket/group/sim.hpp>
#include <hocket/impl/instantiate.hpp>

HOCKET_DETAIL_INSTANTIATE(local::domain)
HOCKET_DETAIL_INSTANTIATE(sim::domain)
