// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// First message of a process to all others: its identity, and the values that must be equal on all ranks. Ranks that
/// were built or configured differently would lay out shared memory differently and reduce wrong elements. With this
/// message they fail at start-up instead, with an error that describes the difference.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
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

/// Sent to other processes as raw bytes.
struct arrival {
  process_identity who;
  std::uint64_t staging_bytes = 0;  ///< see `connect_options`
  char build[96] = {};              ///< version, and macros that change what ranks exchange
};

inline arrival own_arrival(std::uint64_t staging_bytes) {
  arrival own{.who = own_identity(), .staging_bytes = staging_bytes};
  constexpr std::string_view build = HOCKET_BUILD;
  static_assert(build.size() < sizeof own.build);
  build.copy(own.build, build.size());
  return own;
}

/// Returns the arrival that a peer sent, or nothing if `blob` has another size, as from another version.
inline std::optional<arrival> arrival_from(std::span<const std::byte> blob) noexcept {
  arrival result;
  if (blob.size() != sizeof result) return std::nullopt;
  std::memcpy(&result, blob.data(), sizeof result);
  return result;
}

/// Describes why `own`, from rank `self`, and `other`, from rank `rank`, can't work together; empty if they can.
inline std::string difference(const arrival& own, int self, const arrival& other, int rank) {
  const auto both = [&](const std::string& ours, const std::string& theirs) {
    return hocket::detail::concat({"rank ", rank, theirs, ", rank ", self, ours});
  };
  if (std::memcmp(own.build, other.build, sizeof own.build) != 0) {
    const auto built = [](const arrival& each) {
      return " was built as " + std::string(each.build, ::strnlen(each.build, sizeof each.build));
    };
    return both(built(own), built(other)) +
           ": the version, HOCKET_ASSERTION_LEVEL (which NDEBUG changes), HOCKET_MISMATCH_DETECTION and exception "
           "support must be equal on all ranks";
  }
  if (own.staging_bytes != other.staging_bytes) {
    const auto has = [](const arrival& each) {
      return hocket::detail::concat({" has staging_bytes=", each.staging_bytes});
    };
    return both(has(own), has(other)) + ": connect_options must be equal on all ranks";
  }
  return {};
}

}  // namespace ucx
HOCKET_END_NAMESPACE
