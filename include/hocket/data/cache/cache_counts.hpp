// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a cache of files counts, for metrics.
#pragma once

#include <hocket/core/config.hpp>

#include <atomic>
#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// Counts of one `file_cache` since it was made, not of other processes that use the folder. Any thread may read them at
/// any time.
struct cache_counts {
  std::atomic<std::uint64_t> hits{0};              ///< files that were opened without a download by this object
  std::atomic<std::uint64_t> downloads{0};         ///< files that this object has downloaded, at least their last part
  std::atomic<std::uint64_t> downloaded_bytes{0};  ///< bytes that it has written, also of downloads that have failed
  std::atomic<std::uint64_t> evictions{0};         ///< files that it has removed to make room, partial ones included
  std::atomic<std::uint64_t> evicted_bytes{0};     ///< room that this made
};

}  // namespace data
HOCKET_END_NAMESPACE
