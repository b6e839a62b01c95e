// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The shapes of messages between two ranks: see generate_call.hpp.
#pragma once

#include <hocket/collective/detail/call_diagnostics.hpp>
#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>

#include <cstdint>
#include <source_location>
#include <span>
#include <system_error>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Sets the buffer that the message sends, and the receiving rank.
template <class Buffer>
void set_sent(message_spec& spec, const Buffer& buffer, peer to) {
  spec.to = to.rank;
  if constexpr (is_device_buffer<Buffer>) {
    spec.out = bytes_of(buffer);
  } else {
    spec.out = std::as_bytes(as_input(buffer));
    spec.sent_type = element_signature<element_type_t<Buffer>>();
  }
}
/// Sets the buffer that receives the message, and the sending rank.
template <class Buffer>
void set_received(message_spec& spec, Buffer& buffer, peer from) {
  spec.from = from.rank;
  if constexpr (is_device_buffer<std::remove_const_t<Buffer>>) {
    spec.in = bytes_of(buffer);
  } else {
    spec.in = std::as_writable_bytes(as_output(buffer));
    spec.received_type = element_signature<element_type_t<Buffer>>();
  }
}

/// Runs the call. `Sent` and `Received` are the types of its buffers; a call with one buffer passes its type for both.
template <class How, class Sent, class Received, class Domain, class Options>
auto run_message_of(const communicator<Domain>& comm, const message_spec& spec, const Options& options,
                    const std::source_location& site) {
  if constexpr (is_device_buffer<Received>) {
    return device_calls<typename Received::space>::template exchange<
        typename Sent::value_type, typename Received::value_type, typename Sent::space, How>(comm, spec, options, site);
  } else {
    return How::exchange(comm, spec, options, site);
  }
}

/// The buffer and options of a message that the call receives or sends.
template <class Buffer, bool Receives, class How, class Options>
concept message_buffer = (Receives ? output_buffer<Buffer, Options>
                                   : input_buffer<Buffer, How, Options>)&&element<element_of_buffer_t<Buffer>> &&
                         accepted_with<Options, message_options, Buffer>;

/// The buffers and options of a call that sends `Out` and receives `In`.
template <class Out, class In, class How, class Options>
concept message_pair = exchange_pair<Out, In, How, Options> && accepted_with<Options, message_options, In>;

/// (communicator, buffer, peer, tag, options, code)
template <bool Receives>
struct one_way {
  using form = message_form<Receives>;

  template <class How>
  struct overloads {
    static constexpr const char* name =
        Receives ? (How::blocks ? "recv" : "recv_async") : (How::blocks ? "send" : "send_async");

    template <class Domain, class Buffer, call_options Options = options<>>
      requires message_buffer<Buffer, Receives, How, Options>
    typename How::result operator()(const communicator<Domain>& comm, Buffer&& buffer, peer other, tag label = {},
                                    const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run(comm, buffer, other, label, options, site));
    }
    template <class Domain, class Buffer, call_options Options>
      requires How::blocks && message_buffer<Buffer, Receives, How, Options>
    void operator()(const communicator<Domain>& comm, Buffer&& buffer, peer other, tag label, const Options& options,
                    std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run(comm, buffer, other, label, options, site).code();
    }

   private:
    template <class Domain, class Buffer, class Options>
    static auto run(const communicator<Domain>& comm, Buffer& buffer, peer other, tag label, const Options& options,
                    const std::source_location& site) {
      message_spec spec{.name = name, .tag = static_cast<std::uint32_t>(label.value)};
      if constexpr (Receives) {
        set_received(spec, buffer, other);
      } else {
        set_sent(spec, buffer, other);
      }
      using buffer_type = std::remove_const_t<Buffer>;
      return run_message_of<How, buffer_type, buffer_type>(comm, spec, options, site);
    }
  };
};

/// (communicator, out, peer, in, peer, tag, options, code)
struct both_ways {
  using form = exchange_form;

  template <class How>
  struct overloads {
    static constexpr const char* name = How::blocks ? "send_recv" : "send_recv_async";

    template <class Domain, class Out, class In, call_options Options = options<>>
      requires message_pair<Out, In, How, Options>
    typename How::result operator()(const communicator<Domain>& comm, Out&& out, peer to, In&& in, peer from,
                                    tag label = {}, const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run(comm, out, to, in, from, label, options, site));
    }
    template <class Domain, class Out, class In, call_options Options>
      requires How::blocks && message_pair<Out, In, How, Options>
    void operator()(const communicator<Domain>& comm, Out&& out, peer to, In&& in, peer from, tag label,
                    const Options& options, std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run(comm, out, to, in, from, label, options, site).code();
    }

   private:
    template <class Domain, class Out, class In, class Options>
    static auto run(const communicator<Domain>& comm, Out& out, peer to, In& in, peer from, tag label,
                    const Options& options, const std::source_location& site) {
      message_spec spec{.name = name, .tag = static_cast<std::uint32_t>(label.value)};
      set_sent(spec, out, to);
      set_received(spec, in, from);
      return run_message_of<How, std::remove_const_t<Out>, std::remove_const_t<In>>(comm, spec, options, site);
    }
  };
};

}  // namespace detail
HOCKET_END_NAMESPACE
