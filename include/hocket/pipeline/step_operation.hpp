// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Drives a step on ranks that share a thread: an operation of the rank's communicator, which the simulated world polls
/// whenever something arrives for that rank. So each rank acts at its own virtual time, before the world advances.
#pragma once

#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/engine/machine.hpp>
#include <hocket/engine/operation.hpp>

#include <exception>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace pipeline::detail {

template <class Domain>
class step_operation final : public hocket::detail::operation {
  using machine_status = hocket::detail::machine_status;

 public:
  /// `step(owner)` advances the step; it returns true when the step is complete.
  step_operation(const communicator<Domain>& comm, void* owner, bool (*step)(void*))
      : state_(hocket::detail::communicator_access::state(comm)), owner_(owner), step_(step) {
    state_.active().add(*this);
  }
  ~step_operation() override { state_.active().remove(*this); }

  machine_status advance() override {
    if (std::exchange(busy_, true)) return machine_status::blocked;  // the step's own calls poll all operations
    const machine_status found = run_step();
    busy_ = false;
    return found;
  }

  const failure& reported() const override { return cause_; }
  bool has_full_cause() const override { return true; }
  void locate(error_context&) override {}

  /// Returns the exception that ended the step; null if it continues or is complete.
  std::exception_ptr thrown() const noexcept { return thrown_; }

 private:
  machine_status run_step() {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return step_(owner_) ? machine_status::done : machine_status::blocked;
    } catch (const error& problem) {
      thrown_ = std::current_exception();
      cause_ = problem.cause();
    } catch (...) {  // thrown by a stage; the other ranks have been informed
      thrown_ = std::current_exception();
      cause_ = state_.cause();
    }
    return machine_status::failed;
#else
    return step_(owner_) ? machine_status::done : machine_status::blocked;
#endif
  }

  hocket::detail::communicator_state<Domain>& state_;
  void* const owner_;
  bool (*const step_)(void*);
  bool busy_ = false;
  failure cause_;
  std::exception_ptr thrown_;
};

}  // namespace pipeline::detail
HOCKET_END_NAMESPACE
