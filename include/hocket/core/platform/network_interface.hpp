// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// IP addresses, and those of this machine's network interfaces.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/file_descriptor.hpp>
#include <hocket/core/platform/socket.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

/// An IPv4 or IPv6 address without a port.
struct ip_address {
  std::array<std::uint8_t, 16> bytes{};  ///< in network byte order; IPv4: the first 4 bytes
  std::uint16_t family = 0;              ///< AF_INET or AF_INET6; 0: no address

  bool operator==(const ip_address&) const = default;
  explicit operator bool() const noexcept { return family != 0; }

  /// Returns "10.0.0.1", "fd00::1", or "" if there is no address.
  std::string text() const {
    char result[INET6_ADDRSTRLEN] = {};
    if (family != 0) ::inet_ntop(family, bytes.data(), result, sizeof result);
    return result;
  }
};

/// Returns the address in `place`, which may be null. An IPv4 address that a socket of IPv6 shows as "::ffff:10.0.0.1"
/// becomes an IPv4 address.
inline ip_address ip_address_in(const sockaddr* place) noexcept {
  ip_address result;
  if (place == nullptr) return result;
  if (place->sa_family == AF_INET) {
    const auto& four = *reinterpret_cast<const sockaddr_in*>(place);
    std::memcpy(result.bytes.data(), &four.sin_addr, sizeof four.sin_addr);
    result.family = AF_INET;
  } else if (place->sa_family == AF_INET6) {
    const auto& six = *reinterpret_cast<const sockaddr_in6*>(place);
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&six.sin6_addr);
    constexpr std::size_t prefix = 12;
    if (mapped) std::memcpy(result.bytes.data(), six.sin6_addr.s6_addr + prefix, sizeof(in_addr));
    if (!mapped) std::memcpy(result.bytes.data(), &six.sin6_addr, sizeof six.sin6_addr);
    result.family = mapped ? AF_INET : AF_INET6;
  }
  return result;
}

/// Returns the local address of a connected socket, or no address.
inline ip_address local_ip_address(int socket) noexcept { return ip_address_in(local_address(socket).get()); }

/// Returns the address of the other end of a connected socket, or no address.
inline ip_address remote_ip_address(int socket) noexcept { return ip_address_in(remote_address(socket).get()); }

/// Returns false if no packet can be sent to 127.0.0.1, because the loopback interface is down. Sends none.
inline bool reaches_loopback() noexcept {
  const file_descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(9);  // any port
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return !socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
}

/// One address of a network interface; an interface can have several.
struct interface_address {
  std::string interface_name;  ///< "eth0"
  ip_address address;
};

/// Returns the addresses by which other hosts could reach this one: those of interfaces that are up, without the
/// loopback interface and without the link-local addresses of IPv6, which are valid on one link only.
inline std::vector<interface_address> own_interface_addresses() {
  std::vector<interface_address> result;
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return result;
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    constexpr unsigned up = IFF_UP | IFF_RUNNING;
    if ((each->ifa_flags & up) != up || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    const ip_address found = ip_address_in(each->ifa_addr);
    const bool link_local = found.family == AF_INET6 && found.bytes[0] == 0xfe && (found.bytes[1] & 0xc0) == 0x80;
    if (!found || link_local) continue;
    std::string name = each->ifa_name;
    name.resize(std::min(name.size(), name.find(':')));  // a second IPv4 address may be labelled "eth0:1"
    result.push_back({std::move(name), found});
  }
  ::freeifaddrs(all);
  return result;
}

}  // namespace platform
HOCKET_END_NAMESPACE
