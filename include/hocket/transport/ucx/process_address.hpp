// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Addresses that the processes of a world exchange when the world is made.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/ucx/process_identity.hpp>
#include <hocket/transport/ucx/workarounds/tcp_sockets.hpp>
#include <hocket/transport/ucx/worker.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// Identity and addresses of a process, which it sends to all others.
struct process_address {
  process_identity identity;
  std::vector<std::byte> address;
  std::vector<tcp_address> listens;
  std::uint64_t nonce = 0;  ///< see `worker::nonce`
  bool is_device_aware = false;
};

inline constexpr std::byte unreachable_mark{255};
inline constexpr std::size_t most_listens = 254;

/// Encodes a worker's address, the sockets on which it listens, its nonce, and whether it can send device memory.
inline std::vector<std::byte> encode_address(const worker& through) {
  const std::size_t count = std::min(through.listens().size(), most_listens);
  const auto listens = std::as_bytes(std::span(through.listens()).first(count));
  std::vector<std::byte> result = through.address();
  result.insert(result.end(), listens.begin(), listens.end());
  const std::uint64_t number = through.nonce();
  const auto nonce = std::as_bytes(std::span(&number, 1));
  result.insert(result.end(), nonce.begin(), nonce.end());
  result.push_back(static_cast<std::byte>(through.is_device_aware()));
  result.push_back(static_cast<std::byte>(count));
  return result;
}

/// Encodes the failure that a process sends instead if UCX can't start there.
inline std::vector<std::byte> encode_unreachable(const failure& why) {
  const auto text = std::as_bytes(std::span(why.reason));
  std::vector<std::byte> result(text.begin(), text.end());
  result.push_back(static_cast<std::byte>(why.code.value()));
  result.push_back(unreachable_mark);
  return result;
}

/// Returns why `rank`, which sent `addresses`, can't be reached; no failure if it can.
inline failure unreachable_reason(int rank, std::span<const std::byte> addresses) {
  if (addresses.size() < 2 || addresses.back() != unreachable_mark) return {};
  const int reported = std::to_integer<int>(addresses[addresses.size() - 2]);
  const bool known = reported >= static_cast<int>(errc::timeout) && reported <= static_cast<int>(errc::system);
  const errc code = known ? static_cast<errc>(reported) : errc::unreachable;
  const std::string text(reinterpret_cast<const char*>(addresses.data()), addresses.size() - 2);
  return make_failure(code, hocket::detail::concat({"rank ", rank, " reports: ", text}), {.peer = rank});
}

inline process_address decode_address(const process_identity& who, std::vector<std::byte> addresses) {
  process_address result{who, std::move(addresses), {}, 0, false};
  auto& address = result.address;
  constexpr std::size_t last_bytes = sizeof result.nonce + 2;
  if (address.size() < last_bytes) return result;
  const auto last = address.end() - last_bytes;
  std::memcpy(&result.nonce, &*last, sizeof result.nonce);
  result.is_device_aware = *(address.end() - 2) != std::byte{0};
  const std::size_t room = (address.size() - last_bytes) / sizeof(tcp_address);
  result.listens.resize(std::min(room, std::to_integer<std::size_t>(address.back())));
  const std::size_t bytes = result.listens.size() * sizeof(tcp_address);
  const auto listens = last - static_cast<std::ptrdiff_t>(bytes);
  if (bytes > 0) std::memcpy(result.listens.data(), &*listens, bytes);
  address.erase(listens, address.end());
  return result;
}

}  // namespace ucx
HOCKET_END_NAMESPACE
