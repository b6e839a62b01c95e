// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Receives a message from one rank.
#pragma once

#include <hocket/collective/detail/device_calls.hpp>
#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/detail/point_to_point.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>

#include <cstdint>
#include <source_location>
#include <span>
#include <system_error>

HOCKET_BEGIN_NAMESPACE

struct recv_t {
  static constexpr const char* name = "recv";

  /// Fills `buffer` with the next message from rank `from.rank` of `comm` that has the same tag.
  ///
  /// The sender must have sent as many elements as `buffer` has; else the call fails with `mismatch` or `truncated`.
  /// **Memory of devices.** Buffers with a tag, such as `cuda::device(...)`, are sent to, and received from, such buffers alone:
  ///   see docs/device-memory.md.
  /// **Progress, threads, errors.** As for `all_reduce`.
  template <class Domain, writable_buffer Buffer, call_options Options = options<>>
    requires element<element_type_t<Buffer>>
  void operator()(const communicator<Domain>& comm, Buffer&& buffer, peer from, tag label = {},
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_message(comm, spec(name, detail::as_output(buffer), from, label), options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, writable_buffer Buffer, call_options Options>
    requires element<element_type_t<Buffer>>
  void operator()(const communicator<Domain>& comm, Buffer&& buffer, peer from, tag label, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = detail::run_message(comm, spec(name, detail::as_output(buffer), from, label), options, site).code();
  }

 private:
  friend struct recv_async_t;

  template <class T>
  static detail::message_spec spec(const char* called, std::span<T> buffer, peer from, tag label) {
    return {.name = called,
            .in = std::as_writable_bytes(buffer),
            .from = from.rank,
            .tag = static_cast<std::uint32_t>(label.value),
            .received_type = detail::element_signature<T>()};
  }
};

struct recv_async_t {
  static constexpr const char* name = "recv_async";

  /// As `recv`, but returns at once. The buffer belongs to the operation until the request is over.
  template <class Domain, writable_buffer Buffer, call_options Options = options<>>
    requires element<element_type_t<Buffer>>
  request operator()(const communicator<Domain>& comm, Buffer&& buffer, peer from, tag label = {},
                     const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_message(comm, recv_t::spec(name, detail::as_output(buffer), from, label), options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<detail::device_one_way<recv_t, true, detail::blocking>,
                                                 detail::message_form<true>>
    recv{};
inline constexpr detail::with_misuse_diagnostics<detail::device_one_way<recv_async_t, true, detail::starting>,
                                                 detail::message_form<true>>
    recv_async{};

HOCKET_END_NAMESPACE
