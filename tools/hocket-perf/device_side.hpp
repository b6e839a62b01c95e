// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What one rank has of a device: its stream, and memory that collectives reach in the order of this stream.
///
/// The driver of CUDA is loaded when it is asked for: where there is none, that is a sentence.
#pragma once

#include "settings.hpp"

#include <cstddef>
#include <memory>

struct CUstream_st;

namespace perf {

class device_side {
 public:
  /// Why nothing in this memory can be measured on this machine, as a `usage_error`; returns if it can.
  static void require(memory where);

  /// Of a rank: ranks take turns with the devices. The context of that device becomes this thread's.
  device_side(memory where, int rank);
  device_side(const device_side&) = delete;
  device_side& operator=(const device_side&) = delete;
  ~device_side();

  /// Stays until this is destroyed.
  void* allocate(std::size_t bytes);
  /// Between memory of the host and such memory, whichever way, after all that the stream was given; returns when it is
  /// done.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Until all is done that the stream was given.
  void wait();

  CUstream_st* stream() const;

 private:
  struct parts;
  std::unique_ptr<parts> parts_;
};

}  // namespace perf
