// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Integers that must not be confused with each other at a call: `send(comm, buffer, peer{1}, tag{7})`.
#pragma once

#include <hocket/core/config.hpp>

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
  unsigned value = 0;
};

/// Ranks of equal colour end up in the same part of a split communicator.
struct color {
  int value = 0;
};

/// Orders the ranks within a part of a split communicator; equal keys keep the order of ranks.
struct key {
  int value = 0;
};

HOCKET_END_NAMESPACE
