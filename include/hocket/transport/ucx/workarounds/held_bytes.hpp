// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Finds out whether UCX holds bytes for a peer that it has reported as sent.
///
/// Version: seen with UCX 1.13; the code of 1.22 is the same.
/// Symptom: over TCP, UCX reports that a send has completed although the socket had no room for all its bytes. The rest
///   leaves when this process calls UCX again. If it computes instead, peers wait for it, until their calls time out.
///   UCX's flush does not help: it waits for an answer of the peer, which may compute, too.
/// Test: ucx/returned_calls.test.cpp, "a message arrives although its sender calls nothing after the send has returned".
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>

#include <algorithm>
#include <utility>
#include <vector>

#include <linux/sockios.h>
#include <sys/ioctl.h>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// The TCP sockets of this process, listed again when they may have changed: once for all peers that connect meanwhile,
/// because each list costs some system calls for each socket.
class socket_list {
 public:
  void outdate() noexcept { current_ = false; }
  const std::vector<tcp_socket>& get() {
    if (!std::exchange(current_, true)) all_ = own_tcp_sockets();
    return all_;
  }

 private:
  std::vector<tcp_socket> all_;
  bool current_ = false;
};

/// The sockets by which UCX reaches a peer. UCX holds bytes only until its epoll reports that a socket has room: if no
/// socket is full, and UCX then makes no progress, it holds none.
class peer_sockets {
 public:
  /// Call when there may be further connections, and `socket_list::outdate`.
  void search_again() noexcept { known_ = false; }

  /// Returns whether one of the sockets `among` for which `leads_there(tcp_socket)` holds is full. After false, UCX's
  /// epoll has reported all room.
  template <class LeadsThere>
  bool any_full(socket_list& among, LeadsThere leads_there) {
    return !(known_ && none_full()) && find_full(among, leads_there);
  }

 private:
  HOCKET_NO_INLINE bool none_full() const noexcept { return std::none_of(all_.begin(), all_.end(), &is_full); }

  template <class LeadsThere>
  HOCKET_COLD bool find_full(socket_list& among, LeadsThere leads_there) {
    if (known_ && !std::all_of(all_.begin(), all_.end(), &peer_sockets::is_same)) {
      known_ = false;
      among.outdate();
    }
    if (!known_) {
      all_.clear();
      for (const tcp_socket& each : among.get()) {
        if (!each.is_listening && leads_there(each)) all_.push_back(each);
      }
      known_ = true;
    }
    return !none_full();
  }

  static bool is_full(const tcp_socket& one) noexcept {
    if (one.full()) return true;
    // The kernel makes room and reports it to UCX's epoll while it has the socket locked. A process can find the room
    // between these two; this call waits for the lock.
    int unread = 0;
    ::ioctl(one.descriptor, SIOCINQ, &unread);
    return false;
  }
  /// Returns whether the descriptor has not been closed and used again for another file.
  static bool is_same(const tcp_socket& one) {
    return detail::tcp_address_in(platform::remote_address(one.descriptor)) == one.remote_address;
  }

  std::vector<tcp_socket> all_;
  bool known_ = false;
};

}  // namespace ucx
HOCKET_END_NAMESPACE
