// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a source of remote files counts of its requests, for metrics.
#pragma once

#include <hocket/core/config.hpp>

#include <atomic>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// Counts since the source was made. Any thread may read them at any time.
struct request_counts {
  std::atomic<std::uint64_t> requests{0};  ///< all attempts
  std::atomic<std::uint64_t> retries{0};   ///< attempts after one that has failed
  std::atomic<std::uint64_t> bytes{0};     ///< of files that were received, without headers and the text of errors
};

}  // namespace data
HOCKET_END_NAMESPACE
