// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Collectives between devices that reach each other's memory: bound to their buffers once, then enqueued on streams or
/// captured in graphs any number of times. Data bypasses the host, and no host waits for another while streams run.
///
///     auto peers = gpu::reach_peers(comm, gpu::stream_ref(stream));                         // collective
///     auto sum = peers.all_reduce(gpu::device(in, n), gpu::device(out, n), std::plus<>{});  // collective
///     for (...) {
///       backward(stream, in);
///       sum.enqueue(stream);  // local, returns immediately
///       update(stream, out);
///     }
///     sum.wait();  // or a request for the host: hocket::request done = sum.completion();
///     peers.close();  // collective
///
/// Bind a call for a single use if its buffers are used once; this costs two exchanges between hosts:
///
///     peers.all_reduce(gpu::device(in, n), gpu::device(out, n), std::plus<>{}).enqueue(stream);
///
/// **Order.** Each rank binds and enqueues the same calls in the same order, on any streams of its device; calls never
///   overlap. If the order differs between ranks, the next `wait` or a later one fails with `mismatch`.
///   Later work on the stream of `enqueue` sees the result, and may overwrite `in`.
/// **Graphs.** `enqueue` on a stream that is being captured adds the call to the graph. Launch graphs one after
///   another, in the same order on all ranks, and not concurrently with calls that are enqueued.
/// **Buffers** must be device memory from cudaMalloc or cuMemAlloc, not from a pool (cudaMallocAsync). They must stay
///   valid until the bound call is destroyed and its enqueued work is done; after a failure, until `close`. `in` may
///   be the same memory as the rank's part of `out`, and must not overlap `out` in any other way.
/// **Algorithms.** If ranks share one device, all_reduce is one kernel for all of them, launched by rank 0. Otherwise
///   one_shot for small vectors and two_shot, and `direct` if nothing is reduced; `with(ring)` and so on override.
///   These combine in rank order, with the same bits on all ranks and from run to run. Rings and trees have the bits of
///   the host's call with the same algorithm; either all ranks or none must bind them in place. With
///   `require(fixed_tree)` or `require(rank_count_invariant)`, and for operations in three parts, the bits are those of
///   the host's calls; these operations support one_shot, two_shot and direct.
/// **Errors.** A call that can't be bound fails on all ranks alike and ends nothing: `unreachable` (use staged calls),
///   `mismatch`, `invalid_argument`. A failure of `enqueue` or `wait` ends the communicator on all ranks. `wait` ends
///   by its deadline, by `abort`, and when a peer has ended or failed; streams then drain, with invalid results, which
///   may take as long as the caller's own work on them.
/// **Ranks that are threads on one device** share a context, and driver calls that wait for all of its streams may wait
///   for other ranks: docs/device-memory.md describes what to set before, and what to avoid.
/// **Threads.** As for the communicator, which must not move until the last bound call is destroyed.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/host/call.hpp>
#include <hocket/collective/host/impl/call.ipp>
#include <hocket/collective/host/reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/communicator_guard.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/core/text.hpp>
#include <hocket/engine/drive.hpp>
#include <hocket/engine/stream/operation.hpp>
#include <hocket/group/bound_diagnostics.hpp>
#include <hocket/group/exchange.hpp>
#include <hocket/kernel/device/stream_kernel.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>
#include <hocket/transport/cuda_ipc/context_scope.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>
#include <hocket/transport/cuda_ipc/driver_status.hpp>
#include <hocket/transport/cuda_ipc/group.hpp>
#include <hocket/transport/cuda_ipc/memory_query.hpp>
#include <hocket/transport/cuda_ipc/memory_space.hpp>
#include <hocket/transport/cuda_ipc/process_mark.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

struct reaching_peers {
  static constexpr const char* name = "reach_peers";
};
struct binding_device_call {
  static constexpr const char* name = "binding a device call";
};

/// State that all bound calls of a communicator share. `loaded` precedes `group`, so that it is destroyed later.
template <class Domain, class Driver>
struct device_peers {
  using group_type = cuda_ipc::group<Driver>;
  using state_type = communicator_state<Domain>;

  explicit device_peers(const communicator<Domain>& whose) : comm(whose) {}
  state_type& state() const { return communicator_access::state(comm); }

  /// Ends the communicator, as a failing call on it does.
  void revoke(const failure& cause) const { state().revoke_undelivered(in_context(cause, state(), *current_call)); }

  const communicator<Domain>& comm;
  const call_site* current_call = nullptr;  ///< the call that waits for streams or enqueues
  std::optional<Driver> loaded;
  std::unique_ptr<group_type> group;
};

/// Returns why a wait for streams must end before they are done; no failure if it may continue.
template <class State>
failure interruption(State& state) {
  static_cast<void>(poll_control_messages(state, [] { return waiting_call{.operation = "a wait for a stream"}; }));
  if (state.revoked()) return state.consume_cause();
  return state.aborted() ? state.consume_abort() : failure();
}

/// Ends the communicator and throws the call's failure.
template <class State>
[[noreturn]] HOCKET_COLD void raise_and_revoke(State& state, failure cause, const call_site& call) {
  raise(end_failed_call(state, std::move(cause), call, [](error_context&) {}));
}

/// Request for the last enqueued run of a bound call.
template <class Domain, class Driver>
class bound_completion final : public pending {
 public:
  using peers_type = device_peers<Domain, Driver>;
  using operation_state_type = stream_operation<Driver>;

  bound_completion(std::shared_ptr<peers_type> peers, std::shared_ptr<operation_state_type> operation_state,
                   const call_site& call)
      : peers_(std::move(peers)), operation_state_(std::move(operation_state)), call_(call),
        until_(deadline::after(call.timeout)) {}

  bool test() override {
    look([&](bool& done) { return operation_state_->test(until_, done); });
    return over_;
  }
  void wait() override {
    look([&](bool& done) {
      done = true;
      return operation_state_->finish(until_);
    });
  }
  const failure& cause() const override { return cause_; }

 private:
  /// Checks the operation by `ask`. A failure ends the request, except if another thread uses the communicator.
  template <class Look>
  void look(const Look& ask) {
    if (over_) return;
    auto& state = peers_->state();
    const communicator_guard here(state);
    outcome ended = here.refused();
    over_ = !ended.failed();
    if (over_) ended = refuse_if_over(state, never_stopped{}, call_.timeout);
    if (ended.failed()) {
      cause_ = in_context(ended.cause(), state, call_);
      return;
    }
    peers_->current_call = &call_;
    state.stop_reading();
    failure found = ask(over_);
    if (found) ended = end_failed_call(state, std::move(found), call_, [](error_context&) {});
    cause_ = ended.failed() ? ended.cause() : failure();
    over_ = over_ || cause_;
  }

  std::shared_ptr<peers_type> peers_;
  std::shared_ptr<operation_state_type> operation_state_;
  call_site call_;
  deadline until_;
  failure cause_;
  bool over_ = false;
};

}  // namespace detail

namespace cuda {

/// Limit of the vector size for one_shot, in which each rank reads the whole vector, if ranks are on several devices.
/// Not yet measured on a GPU.
inline constexpr std::size_t most_one_shot_bytes = std::size_t{256} << 10;

/// One rank's part of a collective that was bound to its buffers. Movable, like `peers_of`. See the top of this file.
template <class Domain, class Driver>
class bound_call {
 public:
  /// For `peers_of`.
  bound_call(std::shared_ptr<hocket::detail::device_peers<Domain, Driver>> among, const char* name,
             std::shared_ptr<const void> operation,
             std::unique_ptr<hocket::detail::stream_operation<Driver>> operation_state)
      : peers_(std::move(among)), name_(name), operation_(std::move(operation)),
        operation_state_(std::move(operation_state)) {}

  /// Enqueues the call on a stream of this rank's device, which may be being captured. Local; does not wait.
  void enqueue(const stream_of<Driver>& stream, const std::source_location& site = std::source_location::current()) {
    auto& state = peers_->state();
    const hocket::detail::call_site call{name_, site, state.timeout()};
    const hocket::detail::communicator_guard here(state);
    begin(state, here, call);
    peers_->current_call = &call;
    failure found = foreign(stream.handle);
    const bool driver_failed = found && found.code != errc::invalid_argument;
    if (driver_failed) found = peers_->group->end_failed_group(nullptr, std::move(found));
    if (!found) found = operation_state_->enqueue(stream.handle);
    if (!found) return;
    if (found.code == errc::invalid_argument) {
      raise(hocket::detail::refuse(state, std::move(found), call));
    } else {
      hocket::detail::raise_and_revoke(state, std::move(found), call);
    }
  }

  /// Like above, for types that convert to `stream_ref`, such as cudaStream_t.
  void enqueue(const stream_ref& stream, const std::source_location& site = std::source_location::current())
    requires std::is_same_v<Driver, cuda_ipc::driver>
  {
    enqueue(static_cast<const stream_of<Driver>&>(stream), site);
  }

  /// Waits until the last enqueued run is done on this rank. Local, but ends only when all ranks have enqueued it. Does
  /// not cover replays of a graph: synchronize the graph's stream. Options: `timeout`.
  template <hocket::detail::only_timeout Options = options<>>
  void wait(const Options& how = {}, const std::source_location& site = std::source_location::current()) {
    auto& state = peers_->state();
    const hocket::detail::call_site call =
        hocket::detail::site_of(state, name_, hocket::detail::settings_of(how), site);
    const hocket::detail::communicator_guard here(state);
    begin(state, here, call);
    peers_->current_call = &call;
    state.stop_reading();
    failure found = operation_state_->finish(deadline::after(call.timeout));
    if (found) hocket::detail::raise_and_revoke(state, std::move(found), call);
  }
  template <class Given, auto Why = hocket::detail::why_not_options_of<hocket::detail::timeout_options, Given>()>
  hocket::detail::not_understood wait(const Given&, const auto&...) = delete;

  /// Returns a request that completes when the last enqueued run is done on this rank. The request's `wait` is like
  /// `wait`, with the timeout counted from now. Local. If the call is enqueued again, the request covers that run.
  template <hocket::detail::only_timeout Options = options<>>
  request completion(const Options& how = {}, const std::source_location& site = std::source_location::current()) {
    const hocket::detail::call_site call =
        hocket::detail::site_of(peers_->state(), name_, hocket::detail::settings_of(how), site);
    return request(std::make_unique<hocket::detail::bound_completion<Domain, Driver>>(peers_, operation_state_, call));
  }
  template <class Given, auto Why = hocket::detail::why_not_options_of<hocket::detail::timeout_options, Given>()>
  hocket::detail::not_understood completion(const Given&, const auto&...) = delete;

 private:
  template <class State, class Visit>
  void begin(State& state, const Visit& here, const hocket::detail::call_site& call) {
    outcome refused = here.refused();
    if (!refused.failed())
      refused = hocket::detail::refuse_if_over(state, hocket::detail::never_stopped{}, call.timeout);
    if (refused.failed()) raise(hocket::detail::in_context(refused.cause(), state, call));
  }

  failure foreign(cuda_ipc::stream_handle stream) const {
    const auto& where = peers_->group->where();
    cuda_ipc::context_handle context = nullptr;
    const cuda_ipc::status returned = where.through->stream_get_ctx(stream, &context);
    if (returned != cuda_ipc::status::success)
      return status_failure(*where.through, "asking the driver for the stream's context", returned);
    if (context == where.where) return {};
    return make_failure(errc::invalid_argument,
                        "the stream belongs to another device or context than the stream passed to reach_peers: pass a "
                        "stream of that device");
  }

  std::shared_ptr<hocket::detail::device_peers<Domain, Driver>> peers_;
  const char* name_;
  std::shared_ptr<const void> operation_;
  std::shared_ptr<hocket::detail::stream_operation<Driver>> operation_state_;
};

/// The ranks of a communicator, each with a device, that reach each other's memory. `Kernels` provides the tables of
/// kernels `each<Op, T>()` and `fused<Op, T>()`. Movable; a moved-from object can be destroyed or assigned to.
template <class Domain, class Driver, class Kernels>
class peers_of {
 public:
  using call_type = bound_call<Domain, Driver>;

  /// Collective over `comm`, like binding a call and `close`; takes milliseconds. Uses the device of `order`. Throws on
  /// all ranks alike: `unreachable`, with the reason and the ranks, if two ranks can't reach each other's memory or if
  /// streams can't wait for memory words; `bad_environment` if there is no driver or it has too few connections.
  static peers_of reach(const communicator<Domain>& comm, const stream_of<Driver>& order,
                        std::chrono::nanoseconds timeout, cuda_ipc::group_options how,
                        const std::source_location& site) {
    auto made = std::make_shared<shared_type>(comm);
    auto& state = made->state();
    const hocket::detail::call_site call{"reach_peers", site, timeout};
    how.until = deadline::after(timeout);
    if (how.process == cuda_ipc::process_mark()) how.process = cuda_ipc::own_mark();
    how.stream = order.handle;
    how.interrupted = [&state] { return hocket::detail::interruption(state); };
    how.ends = [shared = made.get()](const failure& cause) { shared->revoke(cause); };
    cuda_ipc::driver_context<Driver> at{};
    failure found = driver_context_of(*made, order, at, how.device);
    const auto exchange = hocket::detail::exchange_over<hocket::detail::reaching_peers>(comm, site);
    found = cuda_ipc::detail::agreed(found, static_cast<std::size_t>(comm.size()), exchange);
    if (!found) {
      found = cuda_ipc::group<Driver>::make(at, comm.rank(), comm.size(), exchange, std::move(how), made->group);
    }
    if (found) refuse(*made, std::move(found), call);
    return peers_of(std::move(made));
  }

  int rank() const noexcept { return peers_->group->rank(); }
  int size() const noexcept { return peers_->group->size(); }
  /// True if all ranks are on one device, so that one kernel can reduce for all ranks.
  bool one_device() const noexcept { return peers_->group->one_device(); }

  // The last overload of each function is for calls that match no other overload: see bound_diagnostics.hpp.

  /// Reduces all ranks' `in` by `op` into `out` on each rank. Both have the same number of elements.
  template <class T, class U, class Op, call_options Options = options<>>
    requires hocket::detail::bound_pair<T, U, plan::collective_kind::all_reduce, Options, Op>
  call_type all_reduce(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, const Op& op,
                       const Options& how = {}, const std::source_location& site = std::source_location::current()) {
    return reduce<plan::collective_kind::all_reduce>(in, out, out.size(), op, how, site);
  }
  template <class T, class Op, call_options Options = options<>>
    requires hocket::detail::bound_pair<T, T, plan::collective_kind::all_reduce, Options, Op>
  call_type all_reduce(device_in_place<T, device_memory> buffer, const Op& op, const Options& how = {},
                       const std::source_location& site = std::source_location::current()) {
    return reduce<plan::collective_kind::all_reduce>(buffer.elements, buffer.elements, buffer.elements.size(), op, how,
                                                     site);
  }
  template <class... Arguments,
            auto Why = hocket::detail::why_not_bound<hocket::detail::bound_all_reduce, Arguments...>()>
  hocket::detail::not_understood all_reduce(Arguments&&...) = delete;

  /// Reduces all ranks' `in` by `op`; `out` gets this rank's block of the result. `in` has one block for each rank.
  template <class T, class U, class Op, call_options Options = options<>>
    requires hocket::detail::bound_pair<T, U, plan::collective_kind::reduce_scatter, Options, Op>
  call_type reduce_scatter(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, const Op& op,
                           const Options& how = {},
                           const std::source_location& site = std::source_location::current()) {
    return reduce<plan::collective_kind::reduce_scatter>(in, out, out.size(), op, how, site);
  }
  template <class... Arguments,
            auto Why = hocket::detail::why_not_bound<
                hocket::detail::bound_reduction<plan::collective_kind::reduce_scatter>, Arguments...>()>
  hocket::detail::not_understood reduce_scatter(Arguments&&...) = delete;

  /// Concatenates all ranks' `in` in `out`, in rank order.
  template <class T, class U, call_options Options = options<>>
    requires hocket::detail::bound_pair<T, U, plan::collective_kind::all_gather, Options>
  call_type all_gather(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, const Options& how = {},
                       const std::source_location& site = std::source_location::current()) {
    return move<plan::collective_kind::all_gather>(in, out, in.size(), 0, how, site);
  }
  template <class... Arguments, auto Why = hocket::detail::why_not_bound<
                                    hocket::detail::bound_move<plan::collective_kind::all_gather>, Arguments...>()>
  hocket::detail::not_understood all_gather(Arguments&&...) = delete;

  /// Block r of `in` on rank s becomes block s of `out` on rank r.
  template <class T, class U, call_options Options = options<>>
    requires hocket::detail::bound_pair<T, U, plan::collective_kind::all_to_all, Options>
  call_type all_to_all(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, const Options& how = {},
                       const std::source_location& site = std::source_location::current()) {
    return move<plan::collective_kind::all_to_all>(in, out, out.size() / static_cast<std::size_t>(size()), 0, how,
                                                   site);
  }
  template <class... Arguments, auto Why = hocket::detail::why_not_bound<
                                    hocket::detail::bound_move<plan::collective_kind::all_to_all>, Arguments...>()>
  hocket::detail::not_understood all_to_all(Arguments&&...) = delete;

  /// Copies `buffer` from rank `from` to all ranks.
  template <class T, call_options Options = options<>>
    requires hocket::detail::bound_pair<T, T, plan::collective_kind::broadcast, Options>
  call_type broadcast(device_buffer<T, device_memory> buffer, root from, const Options& how = {},
                      const std::source_location& site = std::source_location::current()) {
    return move<plan::collective_kind::broadcast>(device_buffer<T, device_memory>(nullptr, 0), buffer, buffer.size(),
                                                  from.rank, how, site);
  }
  template <class... Arguments,
            auto Why = hocket::detail::why_not_bound<hocket::detail::bound_broadcast, Arguments...>()>
  hocket::detail::not_understood broadcast(Arguments&&...) = delete;

  /// Ends the group. Each rank may call this at any time; `close` waits for active work and for the other ranks before
  /// it unmaps and frees memory. Without `close`, memory that peers may have mapped remains allocated until the process
  /// ends. May be called again after `timeout`, and after `abort`, which leaves the other ranks five seconds.
  template <hocket::detail::only_timeout Options = options<>>
  void close(const Options& how = {}, const std::source_location& site = std::source_location::current()) {
    auto& state = peers_->state();
    const hocket::detail::call_site call =
        hocket::detail::site_of(state, "close", hocket::detail::settings_of(how), site);
    const hocket::detail::communicator_guard here(state);
    if (const outcome refused = here.refused(); refused.failed()) {
      raise(hocket::detail::in_context(refused.cause(), state, call));
    }
    state.stop_reading();
    peers_->current_call = &call;
    failure found = peers_->group->close(deadline::after(call.timeout));
    if (found) raise(hocket::detail::refuse(state, std::move(found), call));
  }
  template <class Given, auto Why = hocket::detail::why_not_options_of<hocket::detail::timeout_options, Given>()>
  hocket::detail::not_understood close(const Given&, const auto&...) = delete;

 private:
  using shared_type = hocket::detail::device_peers<Domain, Driver>;

  explicit peers_of(std::shared_ptr<shared_type> shared) : peers_(std::move(shared)) {}

  static failure driver_context_of(shared_type& made, const stream_of<Driver>& order,
                                   cuda_ipc::driver_context<Driver>& at, cuda_ipc::device_number& device) {
    at.through = order.through;
    if constexpr (std::is_same_v<Driver, cuda_ipc::driver>) {
      failure why;
      if (at.through == nullptr) made.loaded = Driver::load(why);
      if (why) return why;
      if (made.loaded) at.through = &*made.loaded;
    }
    if (order.handle == nullptr) {
      return make_failure(errc::invalid_argument,
                          "the stream is null: pass a stream of the device whose memory the peers must reach");
    }
    if (at.through == nullptr) {
      return make_failure(errc::invalid_argument, "stream_of has no driver: set its member `through`");
    }
    cuda_ipc::status returned = at.through->stream_get_ctx(order.handle, &at.where);
    if (returned == cuda_ipc::status::success) {
      const cuda_ipc::context_scope scope(*at.through, at.where);
      returned = scope.entered();
      if (returned == cuda_ipc::status::success) returned = at.through->ctx_get_device(&device);
    }
    return returned == cuda_ipc::status::success
               ? failure()
               : status_failure(*at.through, "asking the driver for the stream's device", returned);
  }

  [[noreturn]] static void refuse(const shared_type& shared, failure cause, const hocket::detail::call_site& call) {
    raise(hocket::detail::refuse(shared.state(), std::move(cause), call));
  }

  template <plan::collective_kind Kind, class T, class U, class Op, class Options>
  call_type reduce(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, std::size_t block,
                   const Op& op, const Options& how, const std::source_location& site) {
    const auto effective = hocket::detail::effective_operation<Op, U>(op, how);
    using operation = std::remove_const_t<decltype(effective)>;
    const auto kept = std::make_shared<const operation>(effective);
    const auto* const element_kernel = Kernels::template each<operation, U>();
    hocket::detail::stream_binding bound{.plan = plan_for<Kind>(block * element_kernel->size, 0, how),
                                         .block_elements = block,
                                         .element_kernel = element_kernel,
                                         .operation = kept.get(),
                                         .order = hocket::detail::weakest_order<operation, U>(),
                                         .types = hocket::detail::type_signature<U, operation>()};
    if constexpr (Kind == plan::collective_kind::all_reduce && !Options::template has<kind::algorithm>) {
      const auto* const for_all = Kernels::template fused<operation, U>();
      bound.fused = one_device() && ranks() <= for_all->most_fused;
      if (bound.fused) bound.element_kernel = for_all;
    }
    const std::size_t expected = Kind == plan::collective_kind::reduce_scatter ? block * ranks() : block;
    return bind<Kind>(in, out, {expected, block}, 0, bound, kept, how, site);
  }

  template <plan::collective_kind Kind, class T, class U, class Options>
  call_type move(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, std::size_t block, int from,
                 const Options& how, const std::source_location& site) {
    const hocket::detail::stream_binding bound{.plan = plan_for<Kind>(block * sizeof(U), from, how),
                                               .block_elements = block,
                                               .element_kernel = &kernel::copy_stream_kernel_of<U>,
                                               .types = hocket::detail::type_signature<U, void>()};
    sizes expected{block, block};
    if constexpr (Kind == plan::collective_kind::all_gather) expected.out = block * ranks();
    if constexpr (Kind == plan::collective_kind::all_to_all) expected = {block * ranks(), block * ranks()};
    if constexpr (Kind == plan::collective_kind::broadcast) expected.in = 0;
    return bind<Kind>(in, out, expected, from, bound, nullptr, how, site);
  }

  struct sizes {
    std::size_t in, out;
  };

  template <plan::collective_kind Kind, class T, class U, class Options>
  call_type bind(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, sizes expected, int from,
                 hocket::detail::stream_binding bound, std::shared_ptr<const void> operation, const Options& how,
                 const std::source_location& site) {
    const char* const name = plan::to_string(Kind);
    auto& state = peers_->state();
    const hocket::detail::call_site call = hocket::detail::site_of(state, name, hocket::detail::settings_of(how), site);
    bound.in = reinterpret_cast<std::uintptr_t>(in.data());
    bound.out = reinterpret_cast<std::uintptr_t>(out.data());
    bound.refused = memory_mismatch(in, out, expected, from);
    std::unique_ptr<hocket::detail::stream_operation<Driver>> operation_state;
    const auto exchange = hocket::detail::exchange_over<hocket::detail::binding_device_call>(peers_->comm, site);
    failure found =
        hocket::detail::stream_operation<Driver>::bind(*peers_->group, std::move(bound), exchange, operation_state);
    if (found) refuse(*peers_, std::move(found), call);
    return call_type(peers_, name, std::move(operation), std::move(operation_state));
  }

  /// Returns what is wrong with this rank's arguments. The other ranks learn of it while binding.
  template <class T, class U>
  failure memory_mismatch(device_buffer<T, device_memory> in, device_buffer<U, device_memory> out, sizes expected,
                          int from) const {
    if (from < 0 || from >= size()) {
      return make_failure(errc::invalid_argument,
                          hocket::detail::concat({"the root must be a rank of the communicator, but the root is rank ",
                                                  from, ", and there are ", size(), " ranks"}));
    }
    if (in.size() != expected.in || out.size() != expected.out) {
      return make_failure(
          errc::invalid_argument,
          hocket::detail::concat({"in has ", in.size(), " elements and out ", out.size(), ": with ", size(),
                                  " ranks, in must have ", expected.in, " and out ", expected.out, " elements"}));
    }
    const struct {
      const char* name;
      const void* data;
      std::size_t size;
    } all[] = {{"in", in.data(), in.size()}, {"out", out.data(), out.size()}};
    const auto& where = peers_->group->where();
    const cuda_ipc::context_scope scope(*where.through, where.where);
    if (failure found = scope.refused()) return found;
    for (const auto& each : all) {
      if (each.size == 0) continue;
      auto is = cuda_ipc::memory_space::plain;
      failure found = space_of(*where.through, reinterpret_cast<cuda_ipc::address>(each.data), is);
      if (found) return found;
      if (is != device_memory::space) return hocket::detail::wrong_tag(each.name, each.data, device_memory::space, is);
    }
    return {};
  }

  template <plan::collective_kind Kind, class Options>
  static plan::any_algorithm plan_for(std::size_t block_bytes, int from, const Options& how) {
    using namespace hocket::detail;
    if (const std::optional<plan::any_algorithm> named = named_plan<Kind>(how, from)) return *named;
    if constexpr (Kind == plan::collective_kind::all_reduce) {
      if (block_bytes <= most_one_shot_bytes) return plan::one_shot{};
      return plan::two_shot{};
    } else {
      return plan_of<Kind>::get(direct, from);
    }
  }

  std::size_t ranks() const noexcept { return static_cast<std::size_t>(size()); }

  std::shared_ptr<shared_type> peers_;
};

}  // namespace cuda
HOCKET_END_NAMESPACE
