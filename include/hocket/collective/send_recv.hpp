// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Sends a message to one rank and receives one from another, at the same time.
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

struct send_recv_t {
  static constexpr const char* name = "send_recv";

  /// Sends `out` to rank `to.rank` and fills `in` with a message from rank `from.rank`, both with the same tag; returns
  /// when both are done. Ranks may so exchange data in pairs or in a circle without one having to be first.
  ///
  /// **Buffers.** They must not overlap, and may differ in size and type.
  /// **Progress, threads, errors.** As for `all_reduce`.
  template <class Domain, contiguous_buffer Out, writable_buffer In, call_options Options = options<>>
    requires(element<element_type_t<Out>> && element<element_type_t<In>>)
  void operator()(const communicator<Domain>& comm, const Out& out, peer to, In&& in, peer from, tag label = {},
                  const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_message(comm, spec(name, detail::as_input(out), to, detail::as_output(in), from, label),
                                        options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, contiguous_buffer Out, writable_buffer In, call_options Options>
    requires(element<element_type_t<Out>> && element<element_type_t<In>>)
  void operator()(const communicator<Domain>& comm, const Out& out, peer to, In&& in, peer from, tag label,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    const auto asked = spec(name, detail::as_input(out), to, detail::as_output(in), from, label);
    code = detail::run_message(comm, asked, options, site).code();
  }

 private:
  friend struct send_recv_async_t;

  template <class Sent, class Received>
  static detail::message_spec spec(const char* called, std::span<const Sent> out, peer to, std::span<Received> in,
                                   peer from, tag label) {
    return {.name = called,
            .out = std::as_bytes(out),
            .in = std::as_writable_bytes(in),
            .to = to.rank,
            .from = from.rank,
            .tag = static_cast<std::uint32_t>(label.value),
            .sent_type = detail::element_signature<Sent>(),
            .received_type = detail::element_signature<Received>()};
  }
};

struct send_recv_async_t {
  static constexpr const char* name = "send_recv_async";

  /// As `send_recv`, but returns at once. The buffers belong to the operation until the request is over.
  template <class Domain, lasting_buffer Out, writable_buffer In, call_options Options = options<>>
    requires(element<element_type_t<Out>> && element<element_type_t<In>>)
  request operator()(const communicator<Domain>& comm, Out&& out, peer to, In&& in, peer from, tag label = {},
                     const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    const auto asked = send_recv_t::spec(name, detail::as_input(out), to, detail::as_output(in), from, label);
    return detail::start_message(comm, asked, options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<detail::device_exchange<send_recv_t, detail::blocking>,
                                                 detail::exchange_form>
    send_recv{};
inline constexpr detail::with_misuse_diagnostics<detail::device_exchange<send_recv_async_t, detail::starting>,
                                                 detail::exchange_form>
    send_recv_async{};

HOCKET_END_NAMESPACE
