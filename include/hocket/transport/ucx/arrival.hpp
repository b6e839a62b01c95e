// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a process tells all others first: who it is, and what must be equal on all ranks. Ranks that were built or set up
/// differently would lay out the memory that they share in different ways, and add up what is none of theirs; so they find
/// out at once, and in words.
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

/// Copied from process to process as it lies in memory.
struct arrival {
  process_identity who;
  std::uint64_t staging_bytes = 0;  ///< see `connect_options`
  char build[96] = {};              ///< the version, and the macros that change what ranks say to each other
};

inline arrival own_arrival(std::uint64_t staging_bytes) {
  arrival own{.who = own_identity(), .staging_bytes = staging_bytes};
  constexpr std::string_view build = HOCKET_BUILD;
  static_assert(build.size() < sizeof own.build);
  build.copy(own.build, build.size());
  return own;
}

/// What a peer has sent; nothing if that is none, as from another version.
inline std::optional<arrival> arrival_from(std::span<const std::byte> blob) noexcept {
  arrival result;
  if (blob.size() != sizeof result) return std::nullopt;
  std::memcpy(&result, blob.data(), sizeof result);
  return result;
}

/// What keeps `own`, that of rank `self`, and `other`, that of rank `rank`, from working together; empty if nothing does.
inline std::string difference(const arrival& own, int self, const arrival& other, int rank) {
  const auto both = [&](const std::string& ours, const std::string& theirs) {
    return hocket::detail::concat({"rank ", rank, theirs, ", rank ", self, ours});
  };
  if (std::memcmp(own.build, other.build, sizeof own.build) != 0) {
    const auto built = [](const arrival& each) {
      return " was built as " + std::string(each.build, ::strnlen(each.build, sizeof each.build));
    };
    return both(built(own), built(other)) +
           ": the version, HOCKET_ASSERTION_LEVEL (which NDEBUG changes), HOCKET_MISMATCH_DETECTION and whether there "
           "are "
           "exceptions must be equal on all ranks";
  }
  if (own.staging_bytes != other.staging_bytes) {
    const auto has = [](const arrival& each) { return hocket::detail::concat({" has ", each.staging_bytes}); };
    return both(has(own), has(other)) + " staging_bytes: connect_options must be equal on all ranks";
  }
  return {};
}

}  // namespace ucx
HOCKET_END_NAMESPACE
