// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What an `_async` call returns: the right, and the duty, to wait for it.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <memory>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// What a request holds: an operation together with the communicator that drives it.
class pending {
 public:
  pending() = default;
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  /// Drives the communicator once; true when the operation is over.
  virtual bool test() = 0;
  /// Drives the communicator until the operation is over, at most until its deadline.
  virtual void wait() = 0;
  /// As `wait`, for nobody who would hear of a failure: the next call does.
  virtual void wait_undelivered() { wait(); }
  /// Why it failed, or the latest `test` or `wait` was refused; no failure while it runs and after success.
  virtual const failure& cause() const = 0;
  /// Whether this process is a copy, by `fork`, of the one that has started it, where it stays.
  virtual bool in_forked_child() const noexcept { return false; }
};

}  // namespace detail

/// An operation that was started. Move-only; an empty one is over.
///
/// Nothing runs in the background: an operation moves on while some call drives its communicator, be it `test` or `wait`
/// of this request or of another, or a blocking call. A call on another communicator does not: operations on several ones
/// are waited for in an order that is the same on all ranks. The buffers belong to the operation until it is over.
///
/// The destructor waits as `wait` does, also where an exception leaves the scope: so ranks go on together if all come that far.
/// Where peers wait for what this rank will not do any more, that takes until the deadline, unless `revoke` says so first. It
/// never throws: a failure there has ended the communicator, and the next call on it throws it.
/// **Threads.** As the communicator: one at a time. While another thread is in a call, `wait` fails with
/// `concurrent_use`, and `test` is false: the operation goes on, and can be waited for later. **Lifetime.** Keeps what it needs of its communicator.
class [[nodiscard]] request {
 public:
  request() = default;
  explicit request(std::unique_ptr<detail::pending> started) noexcept : started_(std::move(started)) {}
  request(request&&) noexcept = default;
  request& operator=(request&& other) noexcept {
    finish();
    started_ = std::move(other.started_);
    return *this;
  }
  ~request() { finish(); }

  /// Whether the operation is over; drives it if not. Does not block. After a failure, `wait` says which.
  bool test() { return !started_ || started_->test(); }

  /// Returns when the operation is over. Throws `error` if it failed: `timeout`, `aborted`, `peer_lost`, `mismatch`, …
  void wait() {
    std::error_code code;
    wait(code);
    if (code) raise(started_->cause());
  }
  void wait(std::error_code& code) {
    code.clear();
    if (!started_) return;
    started_->wait();
    code = started_->cause().code;
  }

  /// What went wrong, in full; no failure while the operation runs and after success.
  failure error() const { return started_ ? started_->cause() : failure{}; }

 private:
  void finish() noexcept {
    if (started_ && started_->in_forked_child()) static_cast<void>(started_.release());
    if (started_) started_->wait_undelivered();
    started_.reset();
  }

  std::unique_ptr<detail::pending> started_;
};

HOCKET_END_NAMESPACE
