// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What this rank did last on a communicator, for programs that want to look before anything has failed.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>

#include <string>

HOCKET_BEGIN_NAMESPACE

/// The text that `communicator::set_flight_recorder` has written after a failure, as of now: the last 32 collectives
/// and 16 messages on `comm`, where those under way stand, and the failure, if there was one. See
/// communicator/flight_writer.hpp.
///
/// Local. **Threads.** As a call: throws `error` (concurrent_use) if another thread is in one on `comm`.
template <class Domain>
std::string flight_record(const communicator<Domain>& comm);

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/engine/impl/flight_record.ipp>
#endif
