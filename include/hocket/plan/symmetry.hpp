// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How the ranks of a plan correspond to each other, if they do. The plan of one rank then gives the price for all, so
/// that a price for p ranks takes the steps of one rank and not those of p: see plan/price.hpp.
#pragma once

#include <hocket/core/config.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace plan {

/// What a plan claims in its shape for one number of ranks. `plan::prove` checks it: action i of a lane has the same
/// kind, channel, tag, number of chunks and `join` on every rank, and peers correspond as stated here. `message_first`,
/// places and chunks may differ. With a claim, the chunks of the vector are assumed to have the same length.
enum class rank_symmetry : std::uint8_t {
  none,           ///< no claim
  rotation,       ///< peer q of rank 0 is peer q + r (modulo the number of ranks) of rank r
  exclusive_or,   ///< peer q of rank 0 is peer q ^ r of rank r
  rotated_sends,  ///< like `rotation` for sends, which all come first; then receives in any order, rank 0 ends last
  exchange  ///< the n-th send and the n-th receive of a rank have the same peer; ranks may leave their common pace
};

}  // namespace plan
HOCKET_END_NAMESPACE
