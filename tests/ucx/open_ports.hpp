// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The ports on which processes listen, as the kernel lists them: what `ss -ltn` prints, for some processes only.
#pragma once

#include <hocket/core/platform/directory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace ucx_test {

/// A port on which a process listens.
struct open_port {
  std::string host;  ///< "*": every interface; otherwise an IPv4 address, or the digits of an IPv6 address
  std::uint16_t port = 0;

  auto operator<=>(const open_port&) const = default;
};

/// Returns the targets of the symbolic links in /proc/PID/fd that are sockets, such as "socket:[1234]".
inline std::set<std::string> sockets_of(pid_t process) {
  const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
  std::set<std::string> found;
  for (const std::string& name : hocket::platform::list_directory(folder)) {
    char target[64] = {};
    const ssize_t size = ::readlink((folder + name).c_str(), target, sizeof target - 1);
    if (size > 0 && std::string(target).starts_with("socket:")) found.insert(target);
  }
  return found;
}

/// Returns the host of an address in /proc/net/tcp or tcp6: each 4 bytes are one number in the byte order of the host.
inline std::string host_of(const std::string& digits) {
  if (digits.find_first_not_of('0') == std::string::npos) return "*";
  if (digits.size() != 8) return digits;
  const auto address = static_cast<std::uint32_t>(std::stoul(digits, nullptr, 16));
  std::string text;
  for (unsigned shift = 0; shift < 32; shift += 8) {
    text += (shift == 0 ? "" : ".") + std::to_string((address >> shift) & 0xff);
  }
  return text;
}

/// Returns the ports on which `process` listens. The process must be in the network namespace of this one.
inline std::set<open_port> ports_of(pid_t process) {
  const std::set<std::string> own = sockets_of(process);
  std::set<open_port> found;
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream lines(table);
    std::string line;
    std::getline(lines, line);  // the names of the columns
    while (std::getline(lines, line)) {
      std::istringstream fields(line);
      std::string number, local, remote, state, queues, timer, retransmissions, user, timeout, inode;
      fields >> number >> local >> remote >> state >> queues >> timer >> retransmissions >> user >> timeout >> inode;
      if (state != "0A" || !own.contains("socket:[" + inode + "]")) continue;
      const std::size_t colon = local.find(':');
      found.insert({host_of(local.substr(0, colon)),
                    static_cast<std::uint16_t>(std::stoul(local.substr(colon + 1), nullptr, 16))});
    }
  }
  return found;
}

}  // namespace ucx_test
