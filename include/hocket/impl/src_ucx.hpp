// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Like <hocket/impl/src.hpp>, for ranks over UCX. The same source or another one may include it.
#pragma once

#include <hocket/core/config.hpp>

#if !defined(HOCKET_SEPARATE_COMPILATION)
#error \
    "hocket: <hocket/impl/src_ucx.hpp> is for programs whose sources are all compiled with -DHOCKET_SEPARATE_COMPILATION"
#endif

#include <hocket/group/impl/ucx.ipp>
#include <hocket/group/ucx.hpp>
#include <hocket/impl/instantiate.hpp>
#include <hocket/transport/ucx/impl/agreed_costs.ipp>

HOCKET_DETAIL_INSTANTIATE(ucx::domain)
