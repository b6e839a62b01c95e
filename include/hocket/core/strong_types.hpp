// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Numbers that must not be confused with each other at a call: `send(comm, buffer, peer{1}, tag{7})`.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <span>

HOCKET_BEGIN_NAMESPACE

/// The rank that a broadcast starts from.
struct root {
  int rank = 0;
};

/// The rank at the other end of a message.
struct peer {
  int rank = 0;
};

/// Tells messages between the same two ranks apart: 0 … 65535.
struct tag {
  int value = 0;
};

/// Ranks of equal colour end up in the same part of a split communicator.
struct color {
  int value = 0;
};

/// Orders the ranks within a part of a split communicator; equal keys keep the order of ranks.
struct key {
  int value = 0;
};

/// How many elements the block of each rank has: element r is that of rank r. Equal on all ranks. What it refers to is
/// read while the call is made, and not after.
struct counts {
  std::span<const std::size_t> of_ranks;
};

/// How many elements go to each rank: element r is the number for rank r.
struct send_counts {
  std::span<const std::size_t> of_ranks;
};

/// How many elements come from each rank: element r is the number from rank r.
struct receive_counts {
  std::span<const std::size_t> of_ranks;
};

HOCKET_END_NAMESPACE
