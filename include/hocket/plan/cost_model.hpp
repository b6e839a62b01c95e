// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cost model: how long the actions of a plan take on a machine, given by a few parameters that can be measured.
///
/// Each rank has one port out and one port in, which work at the same time (full duplex, single port), and one
/// processor. Lanes of a rank share all three, first come first served.
/// - A message of m bytes arrives latency + m · seconds_per_byte after it has got both ports. It keeps each port busy
///   for the same time minus latency_overlap · latency.
/// - `receive` ends when the message has arrived. `receive_reduce` then keeps the processor busy for m ·
///   reduce_seconds_per_byte; `copy` does so for m · copy_seconds_per_byte.
/// - `load` keeps the processor busy for peer_latency + m · peer_seconds_per_byte; `load_reduce` over p ranks for
///   peer_latency + (p - 1) m · (peer_seconds_per_byte + reduce_seconds_per_byte), or from the inbox for (p - 1) m ·
///   reduce_seconds_per_byte; `push` for m · peer_seconds_per_byte per peer. None of them uses a port, and ranks that
///   access the same rank's memory do not slow each other down.
/// - A peer's `wait` sees a signal flag_latency later, whatever the number of peers.
/// - A send drains when the action that receives it ends, which is the latest time that plan/action.hpp allows.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/plan/action.hpp>

#include <initializer_list>

HOCKET_BEGIN_NAMESPACE
namespace plan {
namespace detail {

constexpr bool is_no_cost(double value) noexcept { return !hocket::detail::is_finite(value) || value < 0; }

}  // namespace detail

/// Times in seconds. A parameter that is not set costs nothing.
struct cost_model {
  double latency = 0;                  ///< per message (alpha)
  double seconds_per_byte = 0;         ///< of a message (beta)
  double reduce_seconds_per_byte = 0;  ///< per byte of result, for each combination of two operands (gamma)
  double copy_seconds_per_byte = 0;    ///< within a rank
  double peer_latency = 0;             ///< to begin reading peers' memory
  double peer_seconds_per_byte = 0;    ///< to read or write a peer's memory
  double flag_latency = 0;             ///< from `signal` or `push` until the peer's `wait` sees it
  double overhead = 0;                 ///< of the processor, per action
  double latency_overlap = 0;          ///< part of the latency, 0 to 1, in which ports already serve other messages

  /// Returns the time from when a message has got both ports until it arrives.
  constexpr double message(double bytes) const noexcept { return latency + bytes * seconds_per_byte; }

  /// Returns how long a message keeps a port busy.
  constexpr double port(double bytes) const noexcept {
    return (1 - latency_overlap) * latency + bytes * seconds_per_byte;
  }

  /// Returns how long `what`, which moves `bytes` bytes, keeps the processor of one of `ranks` ranks busy.
  constexpr double processor(const action& what, double bytes, int ranks) const noexcept {
    const double others = ranks - 1;
    switch (what.kind) {
      case action_kind::copy: return overhead + bytes * copy_seconds_per_byte;
      case action_kind::receive_reduce: return overhead + bytes * reduce_seconds_per_byte;
      case action_kind::load: return overhead + peer_latency + bytes * peer_seconds_per_byte;
      case action_kind::load_reduce:
        if (what.from == region::inbox) return overhead + others * bytes * reduce_seconds_per_byte;
        return overhead + peer_latency + others * bytes * (peer_seconds_per_byte + reduce_seconds_per_byte);
      case action_kind::push: return overhead + (what.peer == all_peers ? others : 1) * bytes * peer_seconds_per_byte;
      case action_kind::send:
      case action_kind::receive:
      case action_kind::signal:
      case action_kind::wait: break;
    }
    return overhead;
  }

  /// Returns which member is invalid and what would be valid, or null if all are valid.
  constexpr const char* invalid_member() const noexcept {
    if (detail::is_no_cost(latency)) return "latency must be a number of seconds, 0 or more";
    if (detail::is_no_cost(seconds_per_byte)) return "seconds_per_byte must be a number, 0 or more";
    if (detail::is_no_cost(reduce_seconds_per_byte)) return "reduce_seconds_per_byte must be a number, 0 or more";
    if (detail::is_no_cost(copy_seconds_per_byte)) return "copy_seconds_per_byte must be a number, 0 or more";
    if (detail::is_no_cost(peer_latency)) return "peer_latency must be a number of seconds, 0 or more";
    if (detail::is_no_cost(peer_seconds_per_byte)) return "peer_seconds_per_byte must be a number, 0 or more";
    if (detail::is_no_cost(flag_latency)) return "flag_latency must be a number of seconds, 0 or more";
    if (detail::is_no_cost(overhead)) return "overhead must be a number of seconds, 0 or more";
    if (detail::is_no_cost(latency_overlap) || latency_overlap > 1)
      return "latency_overlap must be a number from 0 to 1";
    return nullptr;
  }

  /// Returns the model of a machine that is `factor` times as slow.
  constexpr cost_model scaled(double factor) const noexcept {
    return {latency * factor,
            seconds_per_byte * factor,
            reduce_seconds_per_byte * factor,
            copy_seconds_per_byte * factor,
            peer_latency * factor,
            peer_seconds_per_byte * factor,
            flag_latency * factor,
            overhead * factor,
            latency_overlap};
  }

  friend constexpr bool operator==(const cost_model&, const cost_model&) = default;
};

/// Round figures for pictures and examples, not measured on any machine: 1 µs per message, 10 GB/s, and memory that is
/// read at 20 GB/s.
inline constexpr cost_model example_machine{.latency = 1e-6,
                                            .seconds_per_byte = 1e-10,
                                            .reduce_seconds_per_byte = 5e-11,
                                            .copy_seconds_per_byte = 5e-11,
                                            .peer_latency = 2e-7,
                                            .peer_seconds_per_byte = 5e-11,
                                            .flag_latency = 2e-7};

}  // namespace plan
HOCKET_END_NAMESPACE
