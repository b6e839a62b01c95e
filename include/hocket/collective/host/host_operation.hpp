// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The operation state of a collective on buffers in host memory.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/buffer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/binding.hpp>
#include <hocket/engine/device_copies.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/transport/operation_event.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A copy of the caller's operation, which may be destroyed before an `_async` call completes. It is copied as bytes.
class operation_copy {
 public:
  explicit operation_copy(const operation_view& original) : alignment_(original.alignment) {
    if (original.data == nullptr) return;
    const bool fits = original.size <= sizeof storage_ && original.alignment <= alignof(std::max_align_t);
    data_ = fits ? storage_ : ::operator new(original.size, std::align_val_t(alignment_));
    std::memcpy(data_, original.data, original.size);
  }
  operation_copy(const operation_copy&) = delete;
  operation_copy& operator=(const operation_copy&) = delete;
  ~operation_copy() {
    if (data_ != storage_) ::operator delete(data_, std::align_val_t(alignment_));
  }

  const void* get() const noexcept { return data_; }

 private:
  alignas(std::max_align_t) std::byte storage_[32];
  const std::size_t alignment_;
  void* data_ = nullptr;
};

/// If contributions must be prepared, the collective works in place in its own buffer. Contributions are prepared and
/// results finished a slice at a time, so that a failed or aborted call ends soon.
template <class State>
class host_operation final : public operation {
 public:
  host_operation(State& state, const host_call& call, const planned_call& planned, step_observer observer,
                 device_copies* on_device = nullptr)
      : state_(state), places_(state, call.blocks, planned), operation_(call.operation), prepares_(call.prepares),
        in_(call.in), out_(call.out), element_size_(call.element_size), partial_size_(call.element_kernel->size),
        in_count_(call.in_count), out_count_(has_result(call) ? call.out_count : 0), on_device_(on_device != nullptr),
        buffer_(prepares_ != nullptr ? state.borrow() : growing_buffer()),
        run_(state, bind(call, planned, observer, on_device), planned) {}

  ~host_operation() override {
    if (prepares_ != nullptr) return_buffer(state_, buffer_);
  }

  machine_status advance() override {
    if (prepares_ == nullptr) return run_.advance();
    if (prepared_ < in_count_) prepare_some();
    if (prepared_ < in_count_) return machine_status::progressed;
    if (finished_ == 0) {
      if (const machine_status status = run_.advance(); status != machine_status::done) return status;
    }
    finish_some();
    return finished_ < out_count_ ? machine_status::progressed : machine_status::done;
  }
  const failure& reported() const override { return run_.cause(); }
  bool has_full_cause() const override { return run_.has_full_cause(); }
  bool waits_for_peers() const noexcept override { return !on_device_ && !run_.waits_for_credit(); }
  transport::awaited_events awaited_events() const override {
    const bool is_running = prepares_ == nullptr || (prepared_ == in_count_ && finished_ == 0);
    return is_running ? run_.awaited_events() : transport::every_event;
  }
  void locate(error_context& context) override { run_.locate(context); }

 private:
  bool has_input(const host_call& call) const noexcept {
    return call.what.in_part(state_.rank()) != plan::buffer_part::nothing;
  }
  bool has_result(const host_call& call) const noexcept {
    return call.what.out_part(state_.rank()) != plan::buffer_part::nothing;
  }

  static constexpr std::size_t slice_bytes = 128 * 1024;

  std::size_t next_slice(std::size_t done, std::size_t all) const noexcept {
    return std::min(std::max<std::size_t>(slice_bytes / partial_size_, 1), all - done);
  }

  void prepare_some() {
    const std::size_t count = next_slice(prepared_, in_count_);
    prepares_->prepare(operation_.get(), contributions_ + prepared_ * partial_size_, in_ + prepared_ * element_size_,
                       count);
    prepared_ += count;
  }
  void finish_some() {
    const std::size_t count = next_slice(finished_, out_count_);
    prepares_->finish(operation_.get(), out_ + finished_ * element_size_, result_ + finished_ * partial_size_,
                      state_.size(), count);
    finished_ += count;
  }

  binding bind(const host_call& call, const planned_call& planned, step_observer observer, device_copies* on_device) {
    binding bound{planned.plan,
                  places_.layout(),
                  call.element_kernel,
                  operation_.get(),
                  has_input(call) ? call.in : nullptr,
                  has_result(call) ? call.out : nullptr,
                  planned.signature,
                  observer,
                  planned.checksummed,
                  places_.out_layout(),
                  on_device};
    if (prepares_ != nullptr) {
      contributions_ = buffer_.get(in_count_ * partial_size_);
      result_ = contributions_ + origin_of(call.what, plan::region::out, bound.layout, state_.rank()) * partial_size_;
      bound.in = contributions_;
      if (has_result(call)) bound.out = result_;
    }
    return bound;
  }

  State& state_;
  const block_places<State> places_;
  const operation_copy operation_;
  const preparation* const prepares_;
  const std::byte* const in_;
  std::byte* const out_;
  const std::size_t element_size_;
  const std::size_t partial_size_;
  const std::size_t in_count_;
  const std::size_t out_count_;
  const bool on_device_;
  growing_buffer buffer_;
  std::byte* contributions_ = nullptr;
  std::byte* result_ = nullptr;
  std::size_t prepared_ = 0;  ///< number of prepared contributions
  std::size_t finished_ = 0;  ///< number of finished results
  plan_run<State> run_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
