// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Queues in which control messages from UCX wait for their communicator. A process has one worker and may have many
/// communicators; a message's header identifies the communicator.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/concept.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>

#include <ucp/api/ucp.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Control messages of one communicator. Members except `has_messages` are called with the worker's lock held.
class inbox {
 public:
  bool has_messages() const noexcept { return has_messages_.load(std::memory_order_acquire); }

  void put(transport::control_message message) {
    messages_.push_back(std::move(message));
    has_messages_.store(true, std::memory_order_release);
  }
  /// Takes the oldest message. Returns false if there is none.
  bool pop(transport::control_message& message) {
    if (messages_.empty()) return false;
    message = std::move(messages_.front());
    messages_.pop_front();
    has_messages_.store(!messages_.empty(), std::memory_order_release);
    return true;
  }

 private:
  std::atomic<bool> has_messages_{false};
  std::deque<transport::control_message> messages_;
};

/// Inboxes of all communicators of a process. Members are called with the worker's lock held.
class inboxes {
 public:
  /// Precedes each control message.
  struct header {
    std::uint64_t start_mark;  ///< the same for all ranks of a start
    std::uint32_t context;
    std::int32_t sender;  ///< rank in the communicator
  };

  void open(std::uint32_t context, inbox& to) { by_context_[context] = &to; }
  void close(std::uint32_t context) noexcept { by_context_.erase(context); }

  /// Stores an active message in its inbox. Drops it if it is no control message, if it belongs to another start than
  /// that with `start_mark`, or if its communicator no longer exists.
  void deliver(std::uint64_t start_mark, const void* head, std::size_t head_size, const void* data, std::size_t size,
               const ucp_am_recv_param_t& how) {
    header from{};
    const bool whole = (how.recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0;
    if (head_size != sizeof from || size > transport::control_message::most_bytes || !whole) return;
    std::memcpy(&from, head, sizeof from);
    if (from.start_mark != start_mark) return;
    const auto found = by_context_.find(from.context);
    if (found == by_context_.end()) return;
    const auto* const begin = static_cast<const std::byte*>(data);
    found->second->put({from.sender, {begin, begin + size}});
  }

 private:
  std::unordered_map<std::uint32_t, inbox*> by_context_;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
