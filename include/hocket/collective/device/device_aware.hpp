// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Collectives that move device memory over a device-aware transport: UCX, if it has modules for CUDA and these find a
/// driver. UCX then chooses adapters and links between GPUs; hocket stages nothing.
///
/// These are `all_gather`, `all_to_all`, both with blocks of given lengths too, and `broadcast`. Messages between two
/// ranks are in device/message.hpp. Stream, return and errors are as in device/staged.hpp, which chooses this path if
/// the UCX of all ranks has CUDA and the caller passes no option that only staging supports (`cuda::staging`,
/// `require(checksummed)`, a plan that reads peers' memory, or a user-defined plan).
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/call_spec.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/host_operation.hpp>
#include <hocket/collective/host/impl/call.ipp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/engine/device_copies.hpp>
#include <hocket/engine/operation.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/staging.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns whether the options name no plan, or one that sends messages and copies only to the place of the result.
template <class Options>
constexpr bool allows_device_aware() noexcept {
  if constexpr (Options::template has<kind::staging> || Options::template has<kind::integrity>) {
    return false;
  } else if constexpr (Options::template has<kind::algorithm>) {
    using named = std::remove_cvref_t<decltype(std::declval<const Options&>().template at<kind::algorithm>())>;
    return !std::is_same_v<named, own_plan> && !std::is_same_v<named, direct_t>;
  } else {
    return true;
  }
}

/// Whether the transport can be device-aware.
template <class Domain>
inline constexpr bool has_device_aware = requires(const Domain& through) { through.is_device_aware(); };

/// Whether the transport may carry the call if it is device-aware on all ranks.
template <plan::collective_kind Kind, class Options, class Domain>
inline constexpr bool may_be_device_aware =
    !plan::collective{Kind, 0}.reduces() && allows_device_aware<Options>() && has_device_aware<Domain>;

/// Returns whether the transport of this communicator is device-aware; the result is equal on all ranks.
template <class Domain>
bool is_device_aware(const communicator<Domain>& comm) {
  if (communicator_access::is_moved_from(comm)) return false;  // the call reports it
  return transport::is_device_aware(*communicator_access::state(comm).domain());
}

/// A call whose messages carry device memory without staging.
template <class Driver>
struct device_aware_spec : device_call_spec<Driver> {
  template <class State>
  class operation_state;

  template <class State>
  call_request asked(const State& state) const {
    call_request request = this->host.asked(state);
    request.on_device = true;
    request.type_signature = mix(request.type_signature, hash_text("carried"));
    return request;
  }
};

/// The operation state of such a call: the host operation, which begins when the stream reaches the call. Local copies
/// of a rank are made on a stream of the communicator.
template <class Driver>
template <class State>
class device_aware_spec<Driver>::operation_state final : public operation, private device_copies {
 public:
  operation_state(State& state, const device_aware_spec& spec, const planned_call& call, step_observer observer)
      : resources_(spec.resources), moving_(state, spec.host, call, observer, this) {}
  ~operation_state() override {
    if (done_) return;
    resources_->settle();
    if (!copied_) lane().quiet(deadline::after(std::chrono::seconds(1)));  // may read host scratch memory
  }

  machine_status advance() override {
    std::optional<cuda_ipc::context_scope<Driver>> scope;
    if (failure found = resources_->enter(scope)) return fail(std::move(found));
    if (failure found = resources_->await_stream(reached_)) return fail(std::move(found));
    if (!reached_) return machine_status::blocked;
    const machine_status status = moving_.advance();
    done_ = status == machine_status::done;
    return status;
  }

  const failure& reported() const override { return cause_ ? cause_ : moving_.reported(); }
  bool has_full_cause() const override { return cause_ || moving_.has_full_cause(); }
  failure overdue() const override {
    return reached_ && copied_ ? failure() : device_call_resources<Driver>::overdue();
  }
  void locate(error_context& context) override {
    moving_.locate(context);
    if (!reached_) context.lane = context.step = context.peer = -1;
  }

 private:
  static constexpr std::size_t slot = 0;  // of the lane; only its event is used

  cuda_ipc::staging_lane<Driver>& lane() const noexcept { return resources_->lane(); }

  failure begin(void* to, const void* from, std::size_t bytes) override {
    copied_ = false;
    failure found = lane().copy_down(to, from, bytes);
    return found ? found : lane().note_down(slot);
  }
  failure look(bool& over) override {
    failure found = lane().is_down(slot, copied_);
    over = copied_;
    return found;
  }

  machine_status fail(failure cause) {
    cause_ = std::move(cause);
    return machine_status::failed;
  }

  const std::shared_ptr<device_call_resources<Driver>> resources_;
  host_operation<State> moving_;
  bool reached_ = false;  ///< the stream has reached this call
  bool copied_ = true;    ///< all local copies begun so far are complete
  bool done_ = false;
  failure cause_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
