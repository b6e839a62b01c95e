// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// First message of a process to all others: its identity, its network, and the values that must be equal on all ranks. Ranks that
/// were built or configured differently would lay out shared memory differently and reduce wrong elements. With this
/// message they fail at start-up instead, with an error that describes the difference.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/store_connection.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/ucx/network_description.hpp>
#include <hocket/transport/ucx/process_identity.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace ucx {

/// The part of fixed size is sent to other processes as raw bytes.
struct arrival_values {
  process_identity who;
  std::uint64_t staging_bytes = 0;  ///< see `connect_options`
  char build[96] = {};              ///< version, and macros that change what ranks exchange
};

struct arrival : arrival_values {
  network_description network;
};

inline arrival own_arrival(std::uint64_t staging_bytes, const bootstrap::store_connection& to_store = {}) {
  arrival own{{.who = own_identity(), .staging_bytes = staging_bytes}, own_network(to_store)};
  constexpr std::string_view build = HOCKET_BUILD;
  static_assert(build.size() < sizeof own.build);
  build.copy(own.build, build.size());
  return own;
}

inline bootstrap::blob encode_arrival(const arrival& own) {
  const arrival_values& values = own;
  const auto bytes = std::as_bytes(std::span(&values, 1));
  bootstrap::blob result(bytes.begin(), bytes.end());
  bootstrap::detail::append_bytes(result, encode_network(own.network));
  return result;
}

/// Returns the arrival that a peer sent, or nothing if `blob` has another form, as from another version.
inline std::optional<arrival> arrival_from(bootstrap::byte_view blob) {
  arrival result;
  arrival_values& values = result;
  if (blob.size() < sizeof values) return std::nullopt;
  std::memcpy(&values, blob.data(), sizeof values);
  if (!decode_network(blob.subspan(sizeof values), result.network)) return std::nullopt;
  return result;
}

/// Describes why `own`, from rank `self`, and `other`, from rank `rank`, can't work together; empty if they can.
inline std::string difference(const arrival_values& own, int self, const arrival_values& other, int rank) {
  const auto both = [&](const std::string& ours, const std::string& theirs) {
    return hocket::detail::concat({"rank ", rank, theirs, ", rank ", self, ours});
  };
  if (std::memcmp(own.build, other.build, sizeof own.build) != 0) {
    const auto built = [](const arrival_values& each) {
      return " was built as " + std::string(each.build, ::strnlen(each.build, sizeof each.build));
    };
    return both(built(own), built(other)) +
           ": the version, HOCKET_ASSERTION_LEVEL (which NDEBUG changes), HOCKET_MISMATCH_DETECTION and exception "
           "support must be equal on all ranks";
  }
  if (own.staging_bytes != other.staging_bytes) {
    const auto has = [](const arrival_values& each) {
      return hocket::detail::concat({" has staging_bytes=", each.staging_bytes});
    };
    return both(has(own), has(other)) + ": connect_options must be equal on all ranks";
  }
  return {};
}

}  // namespace ucx
HOCKET_END_NAMESPACE
