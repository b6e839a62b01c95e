// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Metrics that another process has written. The mark and the checksum are added to the input.
#include "fuzz.hpp"

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/checksum.hpp>
#include <hocket/observe/snapshot_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hocket;
  using fuzz::require;
  bootstrap::blob bytes = bootstrap::text_blob(observe::detail::snapshot_mark);
  bootstrap::detail::append_bytes(bytes, std::as_bytes(std::span(data, size)));
  bootstrap::detail::append_integer(bytes, detail::checksum(bytes));
  observe::rank_metrics found;
  if (!observe::read_snapshot(bytes, found).empty()) return 0;
  require(observe::snapshot_bytes(found.metrics, found.constant) == bytes, "metrics are read as they were written");
  return 0;
}
