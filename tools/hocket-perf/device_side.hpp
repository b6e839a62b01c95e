// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// One rank's resources on a device: its stream, and memory that collectives access in the order of this stream.
///
/// The CUDA driver is loaded on first use, so that the program runs without it and reports its absence as an error.
#pragma once

#include "settings.hpp"

#include <cstddef>
#include <memory>

struct CUstream_st;

namespace perf {

class device_side {
 public:
  /// Throws `usage_error` with the reason if this kind of memory can't be measured on this machine.
  static void require(memory where);

  /// Assigns devices to ranks round-robin, and makes the context of the rank's device current in this thread.
  device_side(memory where, int rank);
  device_side(const device_side&) = delete;
  device_side& operator=(const device_side&) = delete;
  ~device_side();

  /// Allocates memory that this object owns and frees in its destructor.
  void* allocate(std::size_t bytes);
  /// Copies between host memory and allocated memory, in either direction and in the stream's order; waits for the end.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Waits until all work in the stream has completed.
  void wait();

  CUstream_st* stream() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace perf
