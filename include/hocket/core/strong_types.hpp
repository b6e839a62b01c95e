// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Strong types for numbers that must not be confused in a call: `send(comm, buffer, peer{1}, tag{7})`.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <span>

HOCKET_BEGIN_NAMESPACE

/// The rank that has, or gets, what the other ranks of a broadcast, scatter, gather or reduce do not.
struct root {
  int rank = 0;
};

/// The rank at the other end of a message.
struct peer {
  int rank = 0;
};

/// Distinguishes messages between the same two ranks: 0 … 65535.
struct tag {
  int value = 0;  ///< the tag
};

/// Ranks of equal colour end up in the same part of a split communicator.
struct color {
  int value = 0;  ///< the colour
};

/// Orders the ranks within a part of a split communicator; equal keys keep the order of ranks.
struct key {
  int value = 0;  ///< the key
};

/// Number of elements in the block of each rank: element r is for rank r. Must be equal on all ranks. The span is read
/// during the call, and not afterwards.
struct counts {
  std::span<const std::size_t> of_ranks;  ///< in elements, by rank
};

/// Number of elements sent to each rank: element r is for rank r.
struct send_counts {
  std::span<const std::size_t> of_ranks;  ///< in elements, by rank
};

/// Number of elements received from each rank: element r is for rank r.
struct receive_counts {
  std::span<const std::size_t> of_ranks;  ///< in elements, by rank
};

HOCKET_END_NAMESPACE
