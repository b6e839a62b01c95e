// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The overloads of collectives for buffers that lie elsewhere than in the program's own memory. What runs such a call is
/// not known here: `device_calls<Space>` is, where the header of that memory was included. For memory of devices that header
/// comes with the door <hocket/cuda.cuh>, before or after this one: the door alone stays as cheap as its kernels are.
#pragma once

#include <hocket/collective/detail/blocks.hpp>
#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/point_to_point.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <source_location>
#include <system_error>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns when the call is over on the host.
struct blocking {
  template <class Spec, class Domain, class Options>
  static outcome run(const communicator<Domain>& comm, const Spec& spec, const Options& options,
                     const std::source_location& site) {
    return run_spec(comm, spec, options, site);
  }
  template <class Spec, class Domain, class Options>
  static outcome exchange(const communicator<Domain>& comm, const Spec& spec, const Options& options,
                          const std::source_location& site) {
    return run_message(comm, spec, options, site);
  }
  static void give(const outcome& found) { deliver(found); }
};

/// Returns at once.
struct starting {
  template <class Spec, class Domain, class Options>
  static request run(const communicator<Domain>& comm, const Spec& spec, const Options& options,
                     const std::source_location& site) {
    return start_call(comm, spec, options, site);
  }
  template <class Spec, class Domain, class Options>
  static request exchange(const communicator<Domain>& comm, const Spec& spec, const Options& options,
                          const std::source_location& site) {
    return start_message(comm, spec, options, site);
  }
  static request give(request started) { return started; }
};

/// Those that have a form with a std::error_code.
template <class How>
concept reports_by_code = std::is_same_v<How, blocking>;

/// Whether in and out may be these.
template <class T, class U>
concept device_pair = std::is_same_v<std::remove_const_t<T>, U>;

/// Of a reduction.
template <class Calls, plan::collective_kind Kind, class How>
struct device_reduction : Calls {
  using Calls::operator();

  template <class Domain, class T, class From, class U, class To, class Op, call_options Options>
    requires device_pair<T, U> && reduction_for<Op, U> && (device_calls<To>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, To> out, const Op& op,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    return How::give(device_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site));
  }
  template <class Domain, class T, class From, class U, class To, class Op, call_options Options>
    requires reports_by_code<How> && device_pair<T, U> && reduction_for<Op, U> &&
             (device_calls<To>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, To> out, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = device_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site).code();
  }

  template <class Domain, class T, class Space, class Op, call_options Options>
    requires(Kind == plan::collective_kind::all_reduce) && reduction_for<Op, T> &&
            (device_calls<Space>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_in_place<T, Space> buffer, const Op& op,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    return (*this)(comm, buffer.elements, buffer.elements, op, options, site);
  }
  template <class Domain, class T, class Space, class Op, call_options Options>
    requires reports_by_code<How> && (Kind == plan::collective_kind::all_reduce) && reduction_for<Op, T> &&
             (device_calls<Space>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_in_place<T, Space> buffer, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    (*this)(comm, buffer.elements, buffer.elements, op, options, code, site);
  }
};

/// ... whose blocks have given lengths.
template <class Calls, plan::collective_kind Kind, class How>
struct device_uneven_reduction : Calls {
  using Calls::operator();

  template <class Domain, class T, class From, class U, class To, class Op, call_options Options>
    requires device_pair<T, U> && reduction_for<Op, U> && (device_calls<To>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, To> out, counts lengths,
                  const Op& op, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(
        device_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site, blocks_of<Kind>(lengths)));
  }
  template <class Domain, class T, class From, class U, class To, class Op, call_options Options>
    requires reports_by_code<How> && device_pair<T, U> && reduction_for<Op, U> &&
             (device_calls<To>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, To> out, counts lengths,
                  const Op& op, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code =
        device_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site, blocks_of<Kind>(lengths)).code();
  }
};

/// Of a call that combines nothing. `Counts` say the lengths of blocks, where they are given.
template <class Calls, plan::collective_kind Kind, class How, class... Counts>
struct device_move : Calls {
  using Calls::operator();

  template <class Domain, class T, class From, class U, class To, call_options Options>
    requires device_pair<T, U> && element<U> && (device_calls<To>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, To> out,
                  Counts... lengths, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(
        device_calls<To>::template move<Kind, How>(comm, in, out, options, site, blocks_of<Kind>(lengths...)));
  }
  template <class Domain, class T, class From, class U, class To, call_options Options>
    requires reports_by_code<How> && device_pair<T, U> && element<U> && (device_calls<To>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, To> out,
                  Counts... lengths, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = device_calls<To>::template move<Kind, How>(comm, in, out, options, site, blocks_of<Kind>(lengths...)).code();
  }
};

/// Of a call from one rank to all others.
template <class Calls, class How>
struct device_rooted : Calls {
  using Calls::operator();

  template <class Domain, class T, class Space, call_options Options>
    requires(!std::is_const_v<T>) && element<T> && (device_calls<Space>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_buffer<T, Space> buffer, root from, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(device_calls<Space>::template broadcast<How>(comm, buffer, from, options, site));
  }
  template <class Domain, class T, class Space, call_options Options>
    requires reports_by_code<How> && (!std::is_const_v<T>) && element<T> &&
             (device_calls<Space>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_buffer<T, Space> buffer, root from, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = device_calls<Space>::template broadcast<How>(comm, buffer, from, options, site).code();
  }
};

// ── Messages between two ranks ─────────────────────────────────────────────────────────────────────────────────────

/// Of `send` and `recv`.
template <class Calls, bool Receives, class How>
struct device_one_way : Calls {
  using Calls::operator();

  template <class Domain, class T, class Space, call_options Options>
    requires(!Receives || !std::is_const_v<T>) && element<std::remove_const_t<T>> &&
            (device_calls<Space>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_buffer<T, Space> buffer, peer other, tag label,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    return How::give(exchange(comm, buffer, other, label, options, site));
  }
  template <class Domain, class T, class Space, call_options Options>
    requires reports_by_code<How> && (!Receives || !std::is_const_v<T>) && element<std::remove_const_t<T>> &&
             (device_calls<Space>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_buffer<T, Space> buffer, peer other, tag label,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = exchange(comm, buffer, other, label, options, site).code();
  }

 private:
  template <class Domain, class T, class Space, class Options>
  static auto exchange(const communicator<Domain>& comm, device_buffer<T, Space> buffer, peer other, tag label,
                       const Options& options, const std::source_location& site) {
    message_spec spec{.name = Calls::name, .tag = static_cast<std::uint32_t>(label.value)};
    if constexpr (Receives) {
      spec.in = bytes_of(buffer);
      spec.from = other.rank;
    } else {
      spec.out = bytes_of(buffer);
      spec.to = other.rank;
    }
    using element_type = std::remove_const_t<T>;
    return device_calls<Space>::template exchange<element_type, element_type, Space, How>(comm, spec, options, site);
  }
};

/// Of `send_recv`.
template <class Calls, class How>
struct device_exchange : Calls {
  using Calls::operator();

  template <class Domain, class T, class From, class U, class To, call_options Options>
    requires(!std::is_const_v<U>) && element<std::remove_const_t<T>> && element<U> &&
            (device_calls<To>::template takes<Options>)
  auto operator()(const communicator<Domain>& comm, device_buffer<T, From> out, peer to, device_buffer<U, To> in,
                  peer from, tag label, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(exchange(comm, out, to, in, from, label, options, site));
  }
  template <class Domain, class T, class From, class U, class To, call_options Options>
    requires reports_by_code<How> && (!std::is_const_v<U>) && element<std::remove_const_t<T>> && element<U> &&
             (device_calls<To>::template takes<Options>)
  void operator()(const communicator<Domain>& comm, device_buffer<T, From> out, peer to, device_buffer<U, To> in,
                  peer from, tag label, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = exchange(comm, out, to, in, from, label, options, site).code();
  }

 private:
  template <class Domain, class T, class From, class U, class To, class Options>
  static auto exchange(const communicator<Domain>& comm, device_buffer<T, From> out, peer to, device_buffer<U, To> in,
                       peer from, tag label, const Options& options, const std::source_location& site) {
    const message_spec spec{.name = Calls::name,
                            .out = bytes_of(out),
                            .in = bytes_of(in),
                            .to = to.rank,
                            .from = from.rank,
                            .tag = static_cast<std::uint32_t>(label.value)};
    return device_calls<To>::template exchange<std::remove_const_t<T>, U, From, How>(comm, spec, options, site);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE

#define HOCKET_DETAIL_HAS_DEVICE_CALLS
#if defined(HOCKET_DETAIL_HAS_CUDA_HEADER)
#include <hocket/collective/device/staged.hpp>
#endif
