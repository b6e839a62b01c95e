// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the processes of a world tell each other when it is made: who they are, and the ways to them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/tcp_sockets.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// What a process tells all others when the world is made.
struct introduction {
  process_identity identity;
  std::vector<std::byte> address;
  std::vector<tcp_address> listens;
};

/// The address of a worker and where it listens, to be sent.
inline std::vector<std::byte> ways_to(const worker& through) {
  const auto listens = std::as_bytes(std::span(through.listens()));
  std::vector<std::byte> result = through.address();
  result.insert(result.end(), listens.begin(), listens.end());
  result.push_back(static_cast<std::byte>(through.listens().size()));
  return result;
}

inline introduction introduce(const process_identity& who, std::vector<std::byte> ways) {
  introduction result{who, std::move(ways), {}};
  auto& address = result.address;
  if (address.empty()) return result;
  const std::size_t room = (address.size() - 1) / sizeof(tcp_address);
  result.listens.resize(std::min(room, std::to_integer<std::size_t>(address.back())));
  address.pop_back();
  const std::size_t bytes = result.listens.size() * sizeof(tcp_address);
  if (bytes > 0) std::memcpy(result.listens.data(), address.data() + address.size() - bytes, bytes);
  address.resize(address.size() - bytes);
  return result;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
