// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The result of an `_async` call, which the caller can, and must, wait for.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>

#include <memory>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// The content of a request: an operation and the communicator that drives it.
class pending {
 public:
  pending() = default;
  pending(const pending&) = delete;
  pending& operator=(const pending&) = delete;
  virtual ~pending() = default;

  /// Drives the communicator once. Returns true when the operation has ended.
  virtual bool test() = 0;
  /// Drives the communicator until the operation has ended, at most until its deadline.
  virtual void wait() = 0;
  /// Like `wait`, but leaves it to the next call on the communicator to report a failure.
  virtual void wait_undelivered() { wait(); }
  /// The cause of a failure, or of a refused `test` or `wait`; no failure while the operation runs and after success.
  virtual const failure& cause() const = 0;
  /// The communicator that the operation belongs to: waiting for one of its operations drives all of them.
  virtual const void* driver() const noexcept { return this; }
  /// True if this process is a copy, made by `fork`, of the process that started the operation and still owns it.
  virtual bool in_forked_child() const noexcept { return false; }
};

struct request_access;

}  // namespace detail

/// An operation that was started. Move-only; an empty request has already completed.
///
/// Nothing runs in the background: an operation makes progress only while a call drives its communicator: `test` or
/// `wait` of a request on it, or a blocking call. Calls on other communicators do not drive it: wait for operations on
/// several communicators in the same order on all ranks, or by `wait_all`. The buffers belong to the operation until it
/// has ended.
///
/// The destructor waits like `wait`, also when an exception leaves the scope, so that ranks stay in step. If peers wait
/// for calls that this rank no longer makes, it waits until the deadline, unless `revoke` is called first. It never
/// throws: a failure there ends the communicator, and the next call on it throws the failure.
/// **Threads.** As for the communicator: one at a time. While another thread is in a call, `wait` fails with
/// `concurrent_use`, and `test` returns false: wait again later. **Lifetime.** Keeps what it needs of its communicator.
class [[nodiscard]] request {
 public:
  request() = default;
  /// For the library: a request for a started operation.
  explicit request(std::unique_ptr<detail::pending> started) noexcept : started_(std::move(started)) {}
  request(request&&) noexcept = default;
  request& operator=(request&& other) noexcept {
    finish();
    started_ = std::move(other.started_);
    return *this;
  }
  ~request() { finish(); }

  /// Returns whether the operation has ended; drives it if not. Does not block. `wait` reports the cause of a failure.
  bool test() { return !started_ || started_->test(); }

  /// Waits for the operation. Throws `error` if it failed: `timeout`, `aborted`, `peer_lost`, `mismatch`, …
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

  /// Returns the failure, in full; no failure while the operation runs and after success.
  failure error() const { return started_ ? started_->cause() : failure{}; }

  /// Returns whether this request has no operation.
  bool is_empty() const noexcept { return !started_; }

 private:
  friend struct detail::request_access;

  void finish() noexcept {
    if (started_ && started_->in_forked_child()) static_cast<void>(started_.release());
    if (started_) started_->wait_undelivered();
    started_.reset();
  }

  std::unique_ptr<detail::pending> started_;
};

HOCKET_END_NAMESPACE
