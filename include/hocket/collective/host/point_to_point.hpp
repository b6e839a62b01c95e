// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages between two ranks, outside any plan: `send`, `recv` and `send_recv`.
#pragma once

#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/concept.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A number that no caller passes by mistake: -1 might be computed as the neighbour of rank 0.
inline constexpr int no_peer = std::numeric_limits<int>::min();

/// The type signature that is sent with a message of such elements; 0 for raw bytes, which match any type.
template <class T>
constexpr std::uint32_t element_signature() noexcept {
  if constexpr (!HOCKET_MISMATCH_DETECTION || std::is_same_v<T, std::byte>) return 0;
  return type_signature<T>() & ~transport::tagged_buffer;
}

template <class State>
class message_exchange;

/// At most one outgoing and one incoming message. A missing half counts as complete from the start.
struct message_spec {
  template <class State>
  using operation_state = message_exchange<State>;

  const char* name = "";
  std::span<const std::byte> out = {};
  std::span<std::byte> in = {};
  int to = no_peer;    ///< `no_peer`: nothing is sent
  int from = no_peer;  ///< `no_peer`: nothing is received
  std::uint32_t tag = 0;
  std::uint32_t channel = transport::point_to_point_channel;
  std::uint32_t sent_type = 0;  ///< of the elements: see `element_signature`
  std::uint32_t received_type = 0;

  const message_spec& message() const noexcept { return *this; }

  template <class State>
  outcome check(const State& state) const {
    const auto valid = [&](int rank) { return rank == no_peer || (rank >= 0 && rank < state.size()); };
    const int bad = !valid(to) ? to : from;
    if (!valid(to) || !valid(from)) {
      return make_failure(errc::invalid_argument,
                          concat({"peer is ", bad, "; it must be one of 0 to ", state.size() - 1}));
    }
    if (tag > 0xffff) {
      return make_failure(errc::invalid_argument,
                          concat({"tag is ", static_cast<std::int32_t>(tag), "; it must be one of 0 to 65535"}));
    }
    return {};
  }
};

constexpr call_kind kind_of_message(const message_spec& spec) noexcept {
  if (spec.to == no_peer) return call_kind::recv;
  return spec.from == no_peer ? call_kind::send : call_kind::send_recv;
}

/// The blocking form of a message. `Spec` is `message_spec`, or a spec of messages from and to device memory.
template <class Domain, class Spec>
outcome run_message(const communicator<Domain>& comm, const Spec& spec, const call_settings& settings,
                    const std::source_location& site);

/// The `_async` form.
template <class Domain, class Spec>
request start_message(const communicator<Domain>& comm, const Spec& spec, const call_settings& settings,
                      const std::source_location& site);

}  // namespace detail
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/collective/host/impl/point_to_point.ipp>
#endif
