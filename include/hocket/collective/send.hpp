// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank.
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

struct send_t {
  static constexpr const char* name = "send";

  /// Sends `buffer` to rank `to.rank` of `comm`, where `recv` with the same tag takes it.
  ///
  /// Messages between two ranks that have the same tag arrive in order. The receiver must ask for as many elements as are
  /// sent, of the same type, unless one of the two is `std::byte`: raw bytes. Collectives and messages of one communicator do not meet: they may be under way at once.
  /// **Buffers.** `buffer` may be reused when the call returns. That may be before the message is received, so the return
  ///   says nothing of the peer; and it may be no sooner, so two ranks must not both `send` first, and none to itself
  ///   unless it has begun to receive: use `send_recv`.
  /// **Memory of devices.** Buffers with a tag, such as `cuda::device(...)`, are sent to, and received from, such buffers alone:
  ///   see docs/device-memory.md.
  /// **Progress, threads, errors.** As for `all_reduce`.
  template <class Domain, contiguous_buffer Buffer, call_options Options = options<>>
    requires element<element_type_t<Buffer>>
  void operator()(const communicator<Domain>& comm, const Buffer& buffer, peer to, tag label = {},
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_message(comm, spec(name, detail::as_input(buffer), to, label), options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer Buffer, call_options Options>
    requires element<element_type_t<Buffer>>
  void operator()(const communicator<Domain>& comm, const Buffer& buffer, peer to, tag label, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = detail::run_message(comm, spec(name, detail::as_input(buffer), to, label), options, site).code();
  }

 private:
  friend struct send_async_t;

  template <class T>
  static detail::message_spec spec(const char* called, std::span<const T> buffer, peer to, tag label) {
    return {.name = called,
            .out = std::as_bytes(buffer),
            .to = to.rank,
            .tag = static_cast<std::uint32_t>(label.value),
            .sent_type = detail::element_signature<T>()};
  }
};

struct send_async_t {
  static constexpr const char* name = "send_async";

  /// As `send`, but returns at once. The buffer must not change until the request is over.
  template <class Domain, lasting_buffer Buffer, call_options Options = options<>>
    requires element<element_type_t<Buffer>>
  request operator()(const communicator<Domain>& comm, Buffer&& buffer, peer to, tag label = {},
                     const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_message(comm, send_t::spec(name, detail::as_input(buffer), to, label), options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<detail::device_one_way<send_t, false, detail::blocking>,
                                                 detail::message_form<false>>
    send{};
inline constexpr detail::with_misuse_diagnostics<detail::device_one_way<send_async_t, false, detail::starting>,
                                                 detail::message_form<false>>
    send_async{};

HOCKET_END_NAMESPACE
