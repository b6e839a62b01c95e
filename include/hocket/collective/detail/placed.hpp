// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The overloads of collectives for buffers that lie elsewhere than in the program's own memory. What runs such a call is
/// not known here: `placed_calls<Space>` is, where the header of that memory was included. For memory of devices that header
/// comes with the door <hocket/cuda.cuh>, before or after this one: the door alone stays as cheap as its kernels are.
#pragma once

#include <hocket/collective/detail/blocks.hpp>
#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/point_to_point.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/placed_buffer.hpp>
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
  template <class Job, class Wire, class Options>
  static outcome run(const communicator<Wire>& comm, const Job& job, const Options& options,
                     const std::source_location& site) {
    return run_job(comm, job, options, site);
  }
  template <class Job, class Wire, class Options>
  static outcome exchange(const communicator<Wire>& comm, const Job& job, const Options& options,
                          const std::source_location& site) {
    return run_message(comm, job, options, site);
  }
  static void give(const outcome& found) { deliver(found); }
};

/// Returns at once.
struct starting {
  template <class Job, class Wire, class Options>
  static request run(const communicator<Wire>& comm, const Job& job, const Options& options,
                     const std::source_location& site) {
    return start_call(comm, job, options, site);
  }
  template <class Job, class Wire, class Options>
  static request exchange(const communicator<Wire>& comm, const Job& job, const Options& options,
                          const std::source_location& site) {
    return start_message(comm, job, options, site);
  }
  static request give(request started) { return started; }
};

/// Those that have a form with a std::error_code.
template <class How>
concept tells_by_code = std::is_same_v<How, blocking>;

/// Whether in and out may be these.
template <class T, class U>
concept placed_pair = std::is_same_v<std::remove_const_t<T>, U>;

/// Of a reduction.
template <class Calls, plan::goal_kind Kind, class How>
struct placed_reduction : Calls {
  using Calls::operator();

  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires placed_pair<T, U> && reduction_for<Op, U> && (placed_calls<To>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, const Op& op,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    return How::give(placed_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site));
  }
  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires tells_by_code<How> && placed_pair<T, U> && reduction_for<Op, U> &&
             (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = placed_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site).code();
  }

  template <class Wire, class T, class Space, class Op, call_options Options>
    requires(Kind == plan::goal_kind::all_reduce) && reduction_for<Op, T> &&
            (placed_calls<Space>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_in_place<T, Space> buffer, const Op& op,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    return (*this)(comm, buffer.elements, buffer.elements, op, options, site);
  }
  template <class Wire, class T, class Space, class Op, call_options Options>
    requires tells_by_code<How> && (Kind == plan::goal_kind::all_reduce) && reduction_for<Op, T> &&
             (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_in_place<T, Space> buffer, const Op& op,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    (*this)(comm, buffer.elements, buffer.elements, op, options, code, site);
  }
};

/// ... whose blocks have given lengths.
template <class Calls, plan::goal_kind Kind, class How>
struct placed_uneven_reduction : Calls {
  using Calls::operator();

  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires placed_pair<T, U> && reduction_for<Op, U> && (placed_calls<To>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, counts lengths,
                  const Op& op, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(
        placed_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site, blocks_of<Kind>(lengths)));
  }
  template <class Wire, class T, class From, class U, class To, class Op, call_options Options>
    requires tells_by_code<How> && placed_pair<T, U> && reduction_for<Op, U> &&
             (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out, counts lengths,
                  const Op& op, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code =
        placed_calls<To>::template reduce<Kind, How>(comm, in, out, op, options, site, blocks_of<Kind>(lengths)).code();
  }
};

/// Of a call that combines nothing. `Counts` say the lengths of blocks, where they are given.
template <class Calls, plan::goal_kind Kind, class How, class... Counts>
struct placed_move : Calls {
  using Calls::operator();

  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires placed_pair<T, U> && element<U> && (placed_calls<To>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out,
                  Counts... lengths, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(
        placed_calls<To>::template move<Kind, How>(comm, in, out, options, site, blocks_of<Kind>(lengths...)));
  }
  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires tells_by_code<How> && placed_pair<T, U> && element<U> && (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> in, placed_buffer<U, To> out,
                  Counts... lengths, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = placed_calls<To>::template move<Kind, How>(comm, in, out, options, site, blocks_of<Kind>(lengths...)).code();
  }
};

/// Of a call from one rank to all others.
template <class Calls, class How>
struct placed_rooted : Calls {
  using Calls::operator();

  template <class Wire, class T, class Space, call_options Options>
    requires(!std::is_const_v<T>) && element<T> && (placed_calls<Space>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, root from, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(placed_calls<Space>::template broadcast<How>(comm, buffer, from, options, site));
  }
  template <class Wire, class T, class Space, call_options Options>
    requires tells_by_code<How> && (!std::is_const_v<T>) && element<T> && (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, root from, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = placed_calls<Space>::template broadcast<How>(comm, buffer, from, options, site).code();
  }
};

// ── Messages between two ranks ─────────────────────────────────────────────────────────────────────────────────────

/// Of `send` and `recv`.
template <class Calls, bool Receives, class How>
struct placed_one_way : Calls {
  using Calls::operator();

  template <class Wire, class T, class Space, call_options Options>
    requires(!Receives || !std::is_const_v<T>) && element<std::remove_const_t<T>> &&
            (placed_calls<Space>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, peer other, tag label,
                  const Options& options, const std::source_location& site = std::source_location::current()) const {
    return How::give(exchange(comm, buffer, other, label, options, site));
  }
  template <class Wire, class T, class Space, call_options Options>
    requires tells_by_code<How> && (!Receives || !std::is_const_v<T>) && element<std::remove_const_t<T>> &&
             (placed_calls<Space>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, peer other, tag label,
                  const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = exchange(comm, buffer, other, label, options, site).code();
  }

 private:
  template <class Wire, class T, class Space, class Options>
  static auto exchange(const communicator<Wire>& comm, placed_buffer<T, Space> buffer, peer other, tag label,
                       const Options& options, const std::source_location& site) {
    message_job job{.name = Calls::name, .tag = static_cast<std::uint32_t>(label.value)};
    if constexpr (Receives) {
      job.in = bytes_of(buffer);
      job.from = other.rank;
    } else {
      job.out = bytes_of(buffer);
      job.to = other.rank;
    }
    using element_type = std::remove_const_t<T>;
    return placed_calls<Space>::template exchange<element_type, element_type, Space, How>(comm, job, options, site);
  }
};

/// Of `send_recv`.
template <class Calls, class How>
struct placed_exchange : Calls {
  using Calls::operator();

  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires(!std::is_const_v<U>) && element<std::remove_const_t<T>> && element<U> &&
            (placed_calls<To>::template takes<Options>)
  auto operator()(const communicator<Wire>& comm, placed_buffer<T, From> out, peer to, placed_buffer<U, To> in,
                  peer from, tag label, const Options& options,
                  const std::source_location& site = std::source_location::current()) const {
    return How::give(exchange(comm, out, to, in, from, label, options, site));
  }
  template <class Wire, class T, class From, class U, class To, call_options Options>
    requires tells_by_code<How> && (!std::is_const_v<U>) && element<std::remove_const_t<T>> && element<U> &&
             (placed_calls<To>::template takes<Options>)
  void operator()(const communicator<Wire>& comm, placed_buffer<T, From> out, peer to, placed_buffer<U, To> in,
                  peer from, tag label, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = exchange(comm, out, to, in, from, label, options, site).code();
  }

 private:
  template <class Wire, class T, class From, class U, class To, class Options>
  static auto exchange(const communicator<Wire>& comm, placed_buffer<T, From> out, peer to, placed_buffer<U, To> in,
                       peer from, tag label, const Options& options, const std::source_location& site) {
    const message_job job{.name = Calls::name,
                          .out = bytes_of(out),
                          .in = bytes_of(in),
                          .to = to.rank,
                          .from = from.rank,
                          .tag = static_cast<std::uint32_t>(label.value)};
    return placed_calls<To>::template exchange<std::remove_const_t<T>, U, From, How>(comm, job, options, site);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE

#define HOCKET_DETAIL_HAS_PLACED_CALLS
#if defined(HOCKET_DETAIL_HAS_CUDA_DOOR)
#include <hocket/collective/device/staged.hpp>
#endif
