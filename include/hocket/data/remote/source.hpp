// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a cache of remote files needs of the storage that has them: one call that describes a file, and one that reads
/// a part of it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// One version of a remote file.
struct remote_file {
  std::string name = {};     ///< where it is: a URL, or what the source defines
  std::uint64_t bytes = 0;   ///< of the whole file
  std::string version = {};  ///< changes with the content: ETag or Last-Modified; empty if none is stated
  std::optional<std::uint32_t> crc32c = {};  ///< of the whole file, if it is stated

  bool operator==(const remote_file&) const = default;
};

/// Reads remote files. May be called by several threads at a time. Each call ends within a time that the source bounds.
class remote_source {
 public:
  remote_source() = default;
  remote_source(const remote_source&) = delete;
  remote_source& operator=(const remote_source&) = delete;
  virtual ~remote_source() = default;

  /// Sets `result` to the current version of a file, or returns a failure that names the file.
  virtual failure describe(const std::string& name, remote_file& result) = 0;

  /// Fills `into` with the bytes of that version from `offset` on, all of which must be within the file. Returns a
  /// failure that names the file if it has changed, has ended early, or could not be read; `into` is then undefined.
  virtual failure read(const remote_file& file, std::uint64_t offset, std::span<std::byte> into) = 0;
};

}  // namespace data
HOCKET_END_NAMESPACE
