// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Long messages, which go as pieces. What UCX has begun to send can't be taken back, and a peer takes megabytes in
/// more time than an abort has: then the connection would have to be closed, and UCX 1.13 ends processes by an
/// assertion that have a long message on a connection that breaks. Of pieces few are under way at any time.
///
/// The receiver asks for all pieces at once, so that they match in order. A tag tells whether more follow, so that
/// lengths that differ are found at the first piece where they do.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/message.hpp>
#include <hocket/transport/ucx/message_tag.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// How a long message is cut.
struct pieces {
  static constexpr std::size_t bytes = std::size_t{512} << 10U;
  static constexpr std::size_t under_way = 2;

  /// Of an empty message there is one.
  static constexpr std::size_t count(std::size_t message) noexcept {
    return message == 0 ? 1 : (message - 1) / bytes + 1;
  }
};

class long_sending;

/// The long messages of a communicator of which some pieces wait, as earlier ones are on their way.
class unposted_messages {
 public:
  unposted_messages() = default;
  unposted_messages(const unposted_messages&) = delete;
  unposted_messages& operator=(const unposted_messages&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  /// With the lock.
  void advance() noexcept;
  /// Whether a message with `tag` to `rank_on_wire` would get between the pieces of one.
  bool precede(int rank_on_wire, ucp_tag_t tag) const noexcept;

 private:
  friend class long_sending;
  long_sending* first_ = nullptr;
};

/// A long message on its way out. Stays where it is.
class long_sending {
 public:
  long_sending(connections& links, int rank_on_wire, ucp_tag_t tag, const void* data, std::size_t size,
               traffic& counted, unposted_messages& others) noexcept
      : links_(links), rank_(rank_on_wire), tag_(tag), next_(static_cast<const std::byte*>(data)), left_(size),
        counted_(counted), others_(others), after_(std::exchange(others.first_, this)) {
    ++counted_.waiting;
  }
  long_sending(const long_sending&) = delete;
  long_sending& operator=(const long_sending&) = delete;
  ~long_sending() {
    leave();
    --counted_.waiting;
  }

  /// With the lock. Goes on as earlier pieces are gone. What a broken connection does not take is left out: who looks
  /// at it finds it broken.
  void advance() noexcept {
    for (request_handle& each : sent_) {
      if (each.pending()) {
        const ucs_status_t status = ucp_request_check_status(each.get());
        if (status == UCS_INPROGRESS) continue;
        each.finish(status);
        if (status != UCS_OK) left_ = 0;
      }
      while (left_ > 0 && !each.pending()) send_piece(each);
    }
    if (left_ == 0) leave();
  }

  /// Whether all of it has left the sender's memory.
  bool drained() const noexcept {
    return left_ == 0 && std::none_of(sent_.begin(), sent_.end(), [](const auto& each) { return each.pending(); });
  }

 private:
  friend class unposted_messages;

  void leave() noexcept {
    for (long_sending** place = &others_.first_; *place != nullptr; place = &(*place)->after_) {
      if (*place != this) continue;
      *place = after_;
      return;
    }
  }

  void send_piece(request_handle& place) noexcept {
    const std::size_t size = std::min(left_, pieces::bytes);
    const ucp_tag_t tag = message_tag::with_more(tag_, size < left_);
    const ucp_request_param_t how{};
    ucs_status_ptr_t const request = ucp_tag_send_nbx(links_.link_to(rank_).get(), next_, size, tag, &how);
    next_ += size;
    left_ -= size;
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) {
      links_.note_error(rank_, UCS_PTR_STATUS(request));
      left_ = 0;
      return;
    }
    place = request_handle(links_, request, rank_, false, counted_);
  }

  connections& links_;
  const int rank_;
  const ucp_tag_t tag_;
  const std::byte* next_;
  std::size_t left_;  ///< bytes from `next_` on
  traffic& counted_;
  unposted_messages& others_;
  long_sending* after_;  ///< among these
  std::array<request_handle, pieces::under_way> sent_;
};

inline void unposted_messages::advance() noexcept {
  for (long_sending* each = first_; each != nullptr;) std::exchange(each, each->after_)->advance();
}

inline bool unposted_messages::precede(int rank_on_wire, ucp_tag_t tag) const noexcept {
  for (const long_sending* each = first_; each != nullptr; each = each->after_) {
    const ucp_tag_t unlike = (each->tag_ ^ tag) & message_tag::matched_mask;
    if (each->rank_ == rank_on_wire && unlike == 0) return true;
  }
  return false;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
