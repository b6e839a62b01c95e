// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Input that every rank reads for itself, from files that may differ between hosts or change between two ranks: the
/// ranks compare its length and checksum before they use it.
#pragma once

#include "crc32c.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/ucx.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace gpt {

/// What a rank has read.
struct reading {
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;

  friend bool operator==(const reading&, const reading&) = default;
};

inline reading reading_of(std::span<const std::byte> bytes) { return {bytes.size(), crc32c_of(bytes)}; }

inline std::string describe(const reading& of, const char* unit) {
  return std::to_string(of.length) + ' ' + unit + ", " + crc32c_text(static_cast<std::uint32_t>(of.checksum));
}

/// Throws the same error on all ranks of `comm` unless all have read the same. Collective.
/// @param what the input, at the begin of the sentence
/// @param unit of the length
/// @param advice what must be the case
inline void check_equal(const hocket::ucx::communicator& comm, const reading& own, const std::string& what,
                        const char* unit, const std::string& advice) {
  std::vector<reading> all(static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, std::span<const reading>(&own, 1), all);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw std::runtime_error(what + " differs between ranks: rank 0 has read " + describe(all[0], unit) + ", rank " +
                             std::to_string(rank) + ' ' + describe(all[rank], unit) + "; " + advice);
  }
}

}  // namespace gpt
