// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Tags by which UCX distinguishes messages.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>

#include <cstdint>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// A tag has 64 bits. UCX matches 51 of them: context 16, source rank 16, channel 3, sequence number 16. So there are
/// at most 2^16 communicators at a time, of at most 2^16 ranks each. The low bits of a sequence number are enough
/// because only `transport::window` numbers are in use at a time; tags of messages outside of plans have 16 bits.
///
/// The other 13 bits are sent but not matched: one indicates that more pieces of the message follow, and the receiver
/// compares 12 with its own call's signature.
struct message_tag {
  static constexpr unsigned context_bits = 16;
  static constexpr std::uint32_t last_context = (1U << context_bits) - 1;
  static constexpr unsigned rank_bits = 16;
  static constexpr unsigned channel_bits = 3;
  static constexpr unsigned sequence_bits = 16;
  static constexpr unsigned more_bits = 1;
  static constexpr unsigned signature_bits = 12;
  static constexpr ucp_tag_t signature_mask = (ucp_tag_t{1} << signature_bits) - 1;
  static constexpr ucp_tag_t more = ucp_tag_t{1} << signature_bits;
  static constexpr ucp_tag_t matched_mask = ~(signature_mask | more);
  static constexpr unsigned context_shift = 64 - context_bits;
  static constexpr ucp_tag_t context_mask = ~ucp_tag_t{0} << context_shift;

  /// Bits that all messages of a communicator have in common, under `context_mask`.
  static constexpr ucp_tag_t of_context(std::uint32_t context) noexcept {
    return static_cast<ucp_tag_t>(context) << context_shift;
  }

  static constexpr ucp_tag_t make(std::uint32_t context, int source, transport::message_id id) noexcept {
    ucp_tag_t tag = context;
    tag = (tag << rank_bits) | static_cast<ucp_tag_t>(source);
    tag = (tag << channel_bits) | id.channel;
    tag = (tag << sequence_bits) | (id.sequence & ((1U << sequence_bits) - 1));
    return (tag << (more_bits + signature_bits)) | (id.signature & signature_mask);
  }

  /// Returns `tag` for a piece of a message; `follow`: whether more pieces follow.
  static constexpr ucp_tag_t with_more(ucp_tag_t tag, bool follow) noexcept { return follow ? tag | more : tag; }

  /// Returns whether a message with `tag` comes from a call like that of `id`, as far as 12 bits can show.
  static constexpr bool same_call(ucp_tag_t tag, transport::message_id id) noexcept {
    id.signature &= signature_mask;
    return transport::fits(static_cast<std::uint32_t>(tag & signature_mask), id);
  }
};
static_assert(message_tag::context_bits + message_tag::rank_bits + message_tag::channel_bits +
                  message_tag::sequence_bits + message_tag::more_bits + message_tag::signature_bits ==
              64);
static_assert(transport::last_channel < (1U << message_tag::channel_bits));

}  // namespace ucx
HOCKET_END_NAMESPACE
