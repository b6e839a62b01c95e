// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cable between two hosts: a program that takes each packet from one network interface and sends it to another,
/// with a delay, or drops it. Unlike the kernel's `netem`, it works wherever packets can be read.
#pragma once

#include <hocket/core/deadline.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/socket.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <limits>
#include <random>
#include <vector>

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sys/epoll.h>
#include <sys/socket.h>

namespace two_hosts {

/// Settings and counters of the cable, in memory that all processes share.
struct cable_settings {
  static constexpr std::int64_t no_end = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

  std::atomic<std::int64_t> packets_left{no_end};  ///< after this number, all packets are lost
  std::atomic<bool> plugged{true};                 ///< if false, the interface of the first host has no carrier
  std::atomic<std::int64_t> delay_microseconds{0};
  std::atomic<unsigned> lost_per_mille{0};
  std::atomic<std::size_t> longest_packet{no_limit};  ///< longer ones are lost without a sign
  std::atomic<std::uint64_t> carried{0};
  std::atomic<std::uint64_t> lost{0};

  void cut_after(std::int64_t packets) { packets_left.store(packets); }
  void repair() { packets_left.store(no_end); }
};

/// One thread only.
class cable {
 public:
  using clock = hocket::deadline::clock;

  /// Connects two interfaces of this network namespace.
  cable(const std::array<const char*, 2>& interfaces, cable_settings& settings)
      : settings_(settings), waiter_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (std::size_t i = 0; i < 2; ++i) {
      ends_[i] = packets_of(interfaces[i]);
      epoll_event wanted{};
      wanted.events = EPOLLIN;
      ::epoll_ctl(waiter_.get(), EPOLL_CTL_ADD, ends_[i].get(), &wanted);
    }
  }

  /// Readable when there are packets to carry.
  int descriptor() const noexcept { return waiter_.get(); }
  /// Returns the time at which the next delayed packet must be sent.
  clock::time_point due() const {
    clock::time_point first = clock::time_point::max();
    for (const auto& each : waiting_) {
      if (!each.empty() && each.front().due < first) first = each.front().due;
    }
    return first;
  }

  void carry() {
    for (std::size_t from = 0; from < 2; ++from) {
      take_all(from);
      give_due(1 - from, waiting_[from]);
    }
  }

 private:
  struct packet {
    clock::time_point due;
    std::vector<std::byte> bytes;
  };
  /// Packets that arrive while a queue is full are lost, as in the kernel.
  static constexpr std::size_t longest_queue = 1000;

  static hocket::platform::file_descriptor packets_of(const char* interface) {
    using hocket::platform::system_failure;
    hocket::platform::file_descriptor result(
        ::socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL)));
    if (!result) hocket::raise(system_failure("cannot read packets", errno));
    // Packets between two interfaces of one machine have no checksum yet, and may be too long for a network. A header
    // before each packet specifies this; it is read and sent together with the packet.
    const int yes = 1, room = 8 << 20;
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(ETH_P_ALL);
    where.sll_ifindex = static_cast<int>(::if_nametoindex(interface));
    if (::setsockopt(result.get(), SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof yes) != 0 ||
        ::setsockopt(result.get(), SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) != 0 ||
        ::setsockopt(result.get(), SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room) != 0 ||
        ::bind(result.get(), reinterpret_cast<const sockaddr*>(&where), sizeof where) != 0) {
      hocket::raise(system_failure(std::string("cannot read the packets of ") + interface, errno));
    }
    return result;
  }

  void take_all(std::size_t from) {
    for (;;) {
      sockaddr_ll sender{};
      socklen_t size = sizeof sender;
      const ssize_t bytes =
          ::recvfrom(ends_[from].get(), room_.data(), room_.size(), 0, reinterpret_cast<sockaddr*>(&sender), &size);
      if (bytes < 0 && errno == ENETDOWN) continue;  // reported once, when the interface goes down
      if (bytes <= 0) return;
      if (sender.sll_pkttype == PACKET_OUTGOING) continue;  // sent by this program
      if (is_lost(static_cast<std::size_t>(bytes)) || waiting_[from].size() >= longest_queue) {
        settings_.lost.fetch_add(1);
        continue;
      }
      const auto delay = std::chrono::microseconds(settings_.delay_microseconds.load());
      waiting_[from].push_back({clock::now() + delay, {room_.data(), room_.data() + bytes}});
    }
  }

  /// Returns the length of the packets of which the network would get what has been read: a header, and one packet or
  /// several of equal length, which the kernel has not divided yet.
  std::size_t packet_length(std::size_t bytes) const noexcept {
    struct {  // as in <linux/virtio_net.h>, which C++ refuses
      std::uint8_t flags, kind;
      std::uint16_t header_bytes, segment_bytes, checksum_start, checksum_offset;
    } found{};
    std::memcpy(&found, room_.data(), sizeof found);
    if (found.kind == 0) return bytes - sizeof found;
    return std::size_t{found.header_bytes} + found.segment_bytes;
  }

  bool is_lost(std::size_t bytes) {
    if (packet_length(bytes) > settings_.longest_packet.load()) return true;
    if (settings_.packets_left.load() != cable_settings::no_end && settings_.packets_left.fetch_sub(1) <= 0) {
      settings_.packets_left.store(0);
      return true;
    }
    return random_() % 1000 < settings_.lost_per_mille.load();
  }

  void give_due(std::size_t to, std::deque<packet>& packets) {
    for (; !packets.empty() && packets.front().due <= clock::now(); packets.pop_front()) {
      const auto& bytes = packets.front().bytes;
      const bool given = ::send(ends_[to].get(), bytes.data(), bytes.size(), 0) >= 0;
      (given ? settings_.carried : settings_.lost).fetch_add(1);
    }
  }

  cable_settings& settings_;
  const hocket::platform::file_descriptor waiter_;
  std::array<hocket::platform::file_descriptor, 2> ends_;
  std::array<std::deque<packet>, 2> waiting_;  ///< indexed by the interface that received them
  std::vector<std::byte> room_ = std::vector<std::byte>(1 << 18);
  std::mt19937 random_{7};
};

}  // namespace two_hosts
