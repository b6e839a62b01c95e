// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a process knows of its network. All processes of a world exchange it, so that all choose the same ways to
/// connect, and an error can state the interfaces of both sides.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/store_connection.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/network_interface.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

struct network_description {
  bool user_has_chosen = false;  ///< UCX_TLS or UCX_NET_DEVICES is set
  bootstrap::store_connection to_store;
  std::vector<platform::interface_address> addresses;

  bool has_family(std::uint16_t family) const {
    return std::any_of(addresses.begin(), addresses.end(),
                       [=](const auto& each) { return each.address.family == family; });
  }
  /// Returns the entry with this address, or null.
  const platform::interface_address* find(const platform::ip_address& wanted) const {
    const auto at = std::find_if(addresses.begin(), addresses.end(),
                                 [&](const auto& each) { return wanted && each.address == wanted; });
    return at == addresses.end() ? nullptr : &*at;
  }
  /// Returns "eth0 10.0.0.1, eth1 fd00::1".
  std::string text() const {
    std::string result;
    for (const auto& each : addresses)
      hocket::detail::append(result, {result.empty() ? "" : ", ", each.interface_name, " ", each.address.text()});
    return result.empty() ? "no interface but loopback" : result;
  }
};

/// @param to_store this process's connection to the store, if the store has connections
inline network_description own_network(const bootstrap::store_connection& to_store) {
  constexpr std::size_t most_addresses = 64;  // limits what all ranks receive from each
  network_description own;
  own.user_has_chosen = std::getenv("UCX_TLS") != nullptr || std::getenv("UCX_NET_DEVICES") != nullptr;
  own.to_store = to_store;
  own.addresses = platform::own_interface_addresses();
  if (own.addresses.size() > most_addresses) own.addresses.resize(most_addresses);
  return own;
}

namespace detail {

inline void append_address(bootstrap::blob& out, const platform::ip_address& what) {
  bootstrap::detail::append_integer(out, what.family);
  bootstrap::detail::append_bytes(out, std::as_bytes(std::span(what.bytes)));
}

inline platform::ip_address read_address(bootstrap::detail::blob_reader& reader) noexcept {
  platform::ip_address result;
  result.family = reader.integer<std::uint16_t>();
  const bootstrap::byte_view bytes = reader.bytes(result.bytes.size());
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(result.bytes)).begin());
  return result;
}

}  // namespace detail

inline bootstrap::blob encode_network(const network_description& what) {
  bootstrap::blob out;
  bootstrap::detail::append_integer(out, static_cast<std::uint8_t>(what.user_has_chosen));
  detail::append_address(out, what.to_store.local);
  detail::append_address(out, what.to_store.remote);
  for (const auto& each : what.addresses) {
    detail::append_address(out, each.address);
    bootstrap::detail::append_integer(out, static_cast<std::uint8_t>(each.interface_name.size()));
    bootstrap::detail::append_bytes(out, bootstrap::text_bytes(each.interface_name));
  }
  return out;
}

/// Returns false if `bytes` are not what `encode_network` wrote.
inline bool decode_network(bootstrap::byte_view bytes, network_description& result) {
  bootstrap::detail::blob_reader reader(bytes);
  result.user_has_chosen = reader.integer<std::uint8_t>() != 0;
  result.to_store.local = detail::read_address(reader);
  result.to_store.remote = detail::read_address(reader);
  while (reader.ok() && reader.left() > 0) {
    platform::interface_address each;
    each.address = detail::read_address(reader);
    each.interface_name = bootstrap::blob_text(reader.bytes(reader.integer<std::uint8_t>()));
    result.addresses.push_back(std::move(each));
  }
  return reader.ok();
}

}  // namespace ucx
HOCKET_END_NAMESPACE
