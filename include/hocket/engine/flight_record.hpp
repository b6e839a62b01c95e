// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The flight record of a communicator as text, for programs that need it before a failure.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>

#include <string>

HOCKET_BEGIN_NAMESPACE

/// Returns the text that a communicator with `set_flight_recorder` writes after a failure, as of now: the last 32
/// collectives and 16 messages on `comm`, the positions of active calls, and the failure, if any. See
/// communicator/flight_writer.hpp.
///
/// Local. **Threads.** As any call: throws `error` (concurrent_use) if another thread is in a call on `comm`.
template <class Domain>
std::string flight_record(const communicator<Domain>& comm);

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/engine/impl/flight_record.ipp>
#endif
