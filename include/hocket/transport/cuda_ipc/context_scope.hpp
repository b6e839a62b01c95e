// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The scope of a call to the driver. The driver works in the calling thread's context, and a thread that only destroys
/// an object may have none, or another. So objects of a context make it current around driver calls. Also, while any
/// thread of the program captures a graph in the default mode, CUDA forbids all threads many calls that are made here,
/// for example queries of events; the scope lifts that, because these calls do not affect the capture.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/driver_types.hpp>

HOCKET_BEGIN_NAMESPACE
namespace cuda_ipc {

/// Makes `wanted` the thread's context and relaxes the thread's capture mode; the destructor restores both.
template <class Driver>
class context_scope {
 public:
  context_scope(Driver& through, context_handle wanted) : through_(through) {
    entered_ = through_.ctx_get_current(&before_);
    if (entered_ == status::success && before_ != wanted) {
      entered_ = through_.ctx_set_current(wanted);
      changed_ = entered_ == status::success;
    }
    if (entered_ != status::success) return;
    entered_ = through_.thread_exchange_stream_capture_mode(&mode_);
    relaxed_ = entered_ == status::success;
  }
  context_scope(const context_scope&) = delete;
  context_scope& operator=(const context_scope&) = delete;
  ~context_scope() {
    if (relaxed_) through_.thread_exchange_stream_capture_mode(&mode_);
    if (changed_) through_.ctx_set_current(before_);
  }

  /// Returns whether the scope was entered.
  status entered() const noexcept { return entered_; }
  /// Returns why the scope was not entered; no failure if it was.
  failure refused() const {
    return entered_ == status::success ? failure()
                                       : status_failure(through_, "entering the device's context", entered_);
  }

 private:
  Driver& through_;
  context_handle before_ = nullptr;
  capture_mode mode_ = capture_mode::relaxed;
  status entered_ = status::success;
  bool changed_ = false;
  bool relaxed_ = false;
};

}  // namespace cuda_ipc
HOCKET_END_NAMESPACE
