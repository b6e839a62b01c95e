// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The driver does what it is asked in the calling thread's context, and a thread that only destroys something may have
/// none, or another. What belongs to a context says so for as long as it talks to the driver. And while any thread of the
/// program captures a graph in the mode that is the default, all threads are kept from much of what is done here, queries
/// of events among it; that has nothing to do with these.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Makes `wanted` the thread's context, lets captures elsewhere forbid it nothing, and puts back what was there when it goes.
template <class Driver>
class context_scope {
 public:
  context_scope(Driver& through, context_handle wanted) : through_(through) {
    said_ = through_.ctx_get_current(&before_);
    if (said_ == status::success && before_ != wanted) {
      said_ = through_.ctx_set_current(wanted);
      changed_ = said_ == status::success;
    }
    if (said_ != status::success) return;
    said_ = through_.thread_exchange_stream_capture_mode(&mode_);
    relaxed_ = said_ == status::success;
  }
  context_scope(const context_scope&) = delete;
  context_scope& operator=(const context_scope&) = delete;
  ~context_scope() {
    if (relaxed_) through_.thread_exchange_stream_capture_mode(&mode_);
    if (changed_) through_.ctx_set_current(before_);
  }

  /// Whether it could be made so.
  status said() const noexcept { return said_; }
  /// Why not; none if it could.
  failure refused() const {
    return said_ == status::success ? failure() : status_failure(through_, "entering the device's context", said_);
  }

 private:
  Driver& through_;
  context_handle before_ = nullptr;
  capture_mode mode_ = capture_mode::relaxed;
  status said_ = status::success;
  bool changed_ = false;
  bool relaxed_ = false;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
