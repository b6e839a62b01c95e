// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// For communicators over a user-defined transport: include this header in addition to those of the collectives.
///
/// With HOCKET_SEPARATE_COMPILATION, headers only declare the templates that have the transport as a parameter, and the
/// library instantiates them for the transports `local`, `sim` and `ucx`. This header always includes the definitions.
#pragma once

#include <hocket/collective/host/impl/call.ipp>
#include <hocket/collective/host/impl/point_to_point.ipp>
#include <hocket/collective/host/impl/push.ipp>
#include <hocket/collective/impl/explain.ipp>
#include <hocket/communicator/impl/state.ipp>
#include <hocket/engine/impl/flight_record.ipp>
#include <hocket/group/impl/allocate.ipp>
#include <hocket/group/impl/shrink.ipp>
#include <hocket/group/impl/split.ipp>
