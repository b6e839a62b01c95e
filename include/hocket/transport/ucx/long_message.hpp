// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Long messages, which are sent in pieces (see piece_format.hpp). All pieces of a message have the same tag, and UCX
/// matches sends with receives in order, so a message waits until all pieces of earlier messages with its tag are
/// posted. A send waits here, so that its sender can continue: plans send several messages ahead. A bit of the tag
/// indicates whether more pieces follow, so that different lengths are detected at the first piece where they differ.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/connections.hpp>
#include <hocket/transport/ucx/message.hpp>
#include <hocket/transport/ucx/message_tag.hpp>
#include <hocket/transport/ucx/piece_format.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Linked list of a communicator's long messages of which some pieces have not been posted to UCX yet.
template <class Message>
class unfinished {
 public:
  unfinished() = default;
  unfinished(const unfinished&) = delete;
  unfinished& operator=(const unfinished&) = delete;

  bool empty() const noexcept { return first_ == nullptr; }
  void enter(Message& one) noexcept { one.after_ = std::exchange(first_, &one); }
  void leave(Message& one) noexcept {
    for (Message** place = &first_; *place != nullptr; place = &(*place)->after_) {
      if (*place != &one) continue;
      *place = one.after_;
      return;
    }
  }
  /// Returns whether a message with `tag` to or from `rank_in_domain` would get between the pieces of a listed message.
  bool precede(int rank_in_domain, ucp_tag_t tag) const noexcept { return is_among(first_, rank_in_domain, tag); }
  /// Does the same for `one`, which is in the list: only messages that entered before it count.
  bool precede(const Message& one) const noexcept { return is_among(one.after_, one.rank_, one.tag_); }
  /// Requires the lock.
  void advance() noexcept {
    for (Message* each = first_; each != nullptr;) std::exchange(each, each->after_)->advance();
  }

 private:
  static bool is_among(const Message* first, int rank_in_domain, ucp_tag_t tag) noexcept {
    for (const Message* each = first; each != nullptr; each = each->after_) {
      if (each->rank_ == rank_in_domain && ((each->tag_ ^ tag) & message_tag::matched_mask) == 0) return true;
    }
    return false;
  }

  Message* first_ = nullptr;  ///< the last that entered
};

/// A message that is being sent: a long message, or one that must wait for a long message. Not movable.
class long_sending {
 public:
  long_sending(connections& links, int rank_in_domain, ucp_tag_t tag, bool on_device, const void* data,
               std::size_t size, traffic& counted, unfinished<long_sending>& others) noexcept
      : links_(links), rank_(rank_in_domain), tag_(tag), on_device_(on_device),
        data_(static_cast<const std::byte*>(data)), size_(size), counted_(counted), others_(others) {
    ++counted_.waiting;
    others_.enter(*this);
  }
  long_sending(const long_sending&) = delete;
  long_sending& operator=(const long_sending&) = delete;
  ~long_sending() {
    others_.leave(*this);
    --counted_.waiting;
  }

  /// Requires the lock. Sends more pieces as earlier ones complete. If the connection breaks, drops the rest: the check
  /// for broken connections reports that. (UCX 1.13 aborts if more is sent and the connection is then closed.)
  void advance() noexcept {
    while (ended_ < number_ && has_ended(place_of(ended_))) ++ended_;
    if (links_.presence_of(rank_) != presence::here) cut_ = true;
    if (!all_gone() && others_.precede(*this)) return;
    const piece_format& format = links_.outgoing(rank_, on_device_);
    while (!all_gone()) {
      if (number_ - ended_ == format.in_flight_limit || !send_piece(format)) return;
    }
    others_.leave(*this);
  }

  /// Returns whether all pieces have left the sender's memory, and the receiver has confirmed those that need it.
  bool drained() const noexcept { return all_gone() && ended_ == number_; }

 private:
  friend class unfinished<long_sending>;

  /// Returns whether no further piece will be posted. An empty message has one piece.
  bool all_gone() const noexcept { return cut_ || (gone_ == size_ && number_ > 0); }

  request_handle& place_of(std::size_t number) noexcept { return sent_[number % sent_.size()]; }

  bool has_ended(request_handle& piece) noexcept {
    if (!piece.pending()) return true;
    const ucs_status_t status = ucp_request_check_status(piece.get());
    if (status == UCS_INPROGRESS) return false;
    piece.finish(status);
    if (status != UCS_OK) cut_ = true;
    return true;
  }

  /// Posts the next piece. Returns false if memory is exhausted.
  bool send_piece(const piece_format& format) noexcept {
    const std::size_t size = format.size_after(gone_, size_);
    const ucp_tag_t tag = message_tag::with_more(tag_, gone_ + size < size_);
    ucp_ep_h const to = links_.link_to(rank_).get();
    send_buffer_pool::pointer sent;
    ucs_status_ptr_t request = nullptr;
    if (format.at_once) {
      sent = links_.outbox().fill(data_ + gone_, size);
      if (sent == nullptr) return false;
      request = links_.outbox().send(*sent, to, tag, format.confirmed(number_));
    } else {
      const ucp_request_param_t how{};
      request = ucp_tag_send_nbx(to, data_ + gone_, size, tag, &how);
    }
    if (UCS_PTR_IS_PTR(request)) {
      place_of(number_) = request_handle(links_, request, rank_, false, counted_, std::move(sent));
    } else {
      links_.outbox().recycle(std::move(sent));
    }
    gone_ += size;
    ++number_;
    if (UCS_PTR_IS_ERR(request)) {
      links_.note_error(rank_, UCS_PTR_STATUS(request));
      cut_ = true;
    }
    return true;
  }

  connections& links_;
  const int rank_;
  const ucp_tag_t tag_;
  const bool on_device_;
  const std::byte* const data_;
  const std::size_t size_;
  std::size_t gone_ = 0;    ///< bytes posted to UCX
  std::size_t number_ = 0;  ///< pieces posted to UCX
  std::size_t ended_ = 0;   ///< posted pieces that have completed
  bool cut_ = false;        ///< the connection is broken: the rest is not sent
  traffic& counted_;
  unfinished<long_sending>& others_;
  long_sending* after_ = nullptr;                                  ///< next in `others_`
  std::array<request_handle, piece_format::most_in_flight> sent_;  ///< by piece number, modulo the array's size
};

/// A long message that is being received. Receives are posted for as many pieces as can be in flight, and for some
/// more, so that UCX need not copy pieces that arrive before this rank makes progress again. Not movable.
class long_receiving {
 public:
  long_receiving(connections& links, int rank_in_domain, ucp_tag_t tag, std::size_t piece_bytes, void* buffer,
                 std::size_t size, traffic& counted, unfinished<long_receiving>& others) noexcept
      : links_(links), rank_(rank_in_domain), tag_(tag), buffer_(static_cast<std::byte*>(buffer)), size_(size),
        piece_bytes_(piece_bytes), counted_(counted), others_(others) {
    others_.enter(*this);
  }
  long_receiving(const long_receiving&) = delete;
  long_receiving& operator=(const long_receiving&) = delete;
  ~long_receiving() { others_.leave(*this); }

  /// Requires the lock. Posts receives for more pieces.
  ucs_status_t advance() noexcept {
    for (; asked_ < size_; asked_ += piece_bytes_, ++number_) {
      request_handle& place = asked_for_[number_ % asked_for_.size()];
      if (place.pending()) return UCS_OK;
      const std::size_t length = std::min(size_ - asked_, piece_bytes_);
      const ucs_status_t status = ask(place, links_, rank_, tag_, buffer_ + asked_, length, counted_);
      if (status != UCS_OK) return status;
    }
    others_.leave(*this);
    return UCS_OK;
  }

  /// Receive of the next piece, which has been posted.
  request_handle& awaited() noexcept { return asked_for_[arrived_ % asked_for_.size()]; }
  std::size_t bytes_before() const noexcept { return arrived_ * piece_bytes_; }
  std::size_t bytes_awaited() const noexcept { return std::min(size_ - bytes_before(), piece_bytes_); }
  /// Requires the lock. Call when the awaited piece has arrived. Posts receives for more pieces.
  ucs_status_t note_arrival() noexcept {
    ++arrived_;
    return advance();
  }
  bool whole() const noexcept { return bytes_before() >= size_; }

 private:
  friend class unfinished<long_receiving>;

  connections& links_;
  const int rank_;
  const ucp_tag_t tag_;
  std::byte* const buffer_;
  const std::size_t size_;
  const std::size_t piece_bytes_;
  std::size_t asked_ = 0;    ///< bytes for which receives were posted
  std::size_t number_ = 0;   ///< pieces for which receives were posted
  std::size_t arrived_ = 0;  ///< pieces that have arrived
  traffic& counted_;
  unfinished<long_receiving>& others_;
  long_receiving* after_ = nullptr;                                         ///< next in `others_`
  std::array<request_handle, 2 * piece_format::most_in_flight> asked_for_;  ///< by number, modulo the array's size
};

}  // namespace ucx
HOCKET_END_NAMESPACE
