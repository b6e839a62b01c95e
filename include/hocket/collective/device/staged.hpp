// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Calls on device memory, on every transport: host calls on chunks that are staged in pinned host memory. While one
/// chunk is combined, the next is copied to the host and the last to the device.
///
/// If this header is included, all collectives except `barrier`, which has no buffer, and `send`, `recv` and
/// `send_recv` take `cuda::device(...)`, `cuda::pinned(...)` and `cuda::managed(...)`. The properties of such calls:
///
/// **Order.** The call reads `in` after all work that was enqueued on `stream` before the call. Work enqueued on
///   `stream` after the call sees the result. Other streams are not ordered with the call.
/// **Return.** The call returns when this rank's part of the collective is complete on the host and the last copies to
///   the device are enqueued, but perhaps not complete. `in` and `out` may be used in stream order, and by the host
///   after `stream` is synchronised. A stream that is being captured into a graph is refused: each call needs the host.
/// **The `_async` forms** return immediately, and read `in` after all work enqueued on `stream` before. The rest is
///   done while the communicator is driven. Work enqueued on `stream` after `test` or `wait` have reported completion
///   sees the result. Work enqueued before that does not wait for it, and must not use `in` and `out`.
/// **Chunks.** `with(cuda::staging{bytes})`, equal on all ranks. Each block is cut at the same positions on every rank,
///   one plan combines each chunk, and the kind of memory may differ between ranks.
/// **Order of results.** That of a chunk is that of a host vector of its size. So an algorithm that adds in rank order,
///   and `require(rank_count_invariant)`, give the bits of the call on the host. If the order depends on the position
///   of an element (ring, halving_doubling), or the choice on the size, the bits are the same on all ranks and from run
///   to run, but may differ from those of the call on the host.
/// **`all_to_all_v`** uses one chunk: no rank knows others' lengths. **Pinned memory** is copied only to cut blocks.
/// **Messages** from tagged buffers must be received into tagged buffers of as many elements of the same type. Pass
///   host memory as `cuda::pinned(...)`. `with(cuda::staging{bytes})` must be equal on sender and receiver.
/// **Calls that only move elements** are carried by the transport instead if it can: see device/device_aware.hpp and
///   device/message.hpp. Everything here except `Chunks` holds for them too.
/// **Errors.** As for the call on the host. `invalid_argument` before anything is sent if memory is not of the kind
///   that its tag names. An error of the driver, at any time, ends the communicator. Earlier work on `stream` that does
///   not complete is a `timeout`. The contents of `out` are then undefined, but copies in flight are ordered before
///   work enqueued on `stream` later. Pinned memory that a stream may touch is not freed.
#pragma once

#include <hocket/collective/device/call_resources.hpp>
#include <hocket/collective/device/device_aware.hpp>
#include <hocket/collective/device/memory.hpp>
#include <hocket/collective/device/message.hpp>
#include <hocket/collective/device/staged_call_spec.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/host_call.hpp>
#include <hocket/collective/host/move.hpp>
#include <hocket/collective/host/point_to_point.hpp>
#include <hocket/collective/host/reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/transport/cuda_ipc/driver.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The calls on CUDA's kinds of memory: carried by the transport if it supports the whole call, else staged.
template <cuda::memory Space>
struct device_calls<Space> {
  template <class Options>
  static constexpr bool takes = Options::template has<kind::stream>;

  template <plan::collective_kind Kind, class How, block_lengths Lengths, class Domain, class T, class From, class U,
            class Op, class Options>
  static auto reduce(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, Space> out,
                     const Op& op, int root, const Options& options, const std::source_location& site,
                     const block_counts& blocks) {
    const auto hosts = for_host(options);
    const auto effective = effective_operation<Op, U>(op, hosts);
    const host_call call =
        make_reduction<Kind, Lengths, cuda::tagged_memory>(input(in), output(out), effective, root, blocks);
    return run<Kind, How, From>(comm, call, options, hosts, site);
  }
  template <plan::collective_kind Kind, class How, block_lengths Lengths, class Domain, class T, class From, class U,
            class Options>
  static auto move(const communicator<Domain>& comm, device_buffer<T, From> in, device_buffer<U, Space> out, int root,
                   const Options& options, const std::source_location& site, const block_counts& blocks) {
    const auto hosts = for_host(options);
    const host_call call = make_move<Kind, Lengths, cuda::tagged_memory>(input(in), output(out), root, blocks);
    return run<Kind, How, From>(comm, call, options, hosts, site);
  }
  template <class How, class Domain, class T, class Options>
  static auto broadcast(const communicator<Domain>& comm, device_buffer<T, Space> buffer, root from,
                        const Options& options, const std::source_location& site) {
    constexpr auto what = plan::collective_kind::broadcast;
    const auto hosts = for_host(options);
    const host_call call =
        make_move<what, block_lengths::equal, cuda::tagged_memory>(std::span<const T>(), output(buffer), from.rank);
    return run<what, How, Space>(comm, call, options, hosts, site);
  }

  /// `host` has the buffers. T is the type of sent elements, U that of received elements.
  template <class T, class U, class From, class How, class Domain, class Options>
  static auto exchange(const communicator<Domain>& comm, message_spec host, const Options& options,
                       const std::source_location& site) {
    using driver_type = driver_of<Options>;
    const auto hosts = for_host(options);
    const device_message<driver_type> message{host, From::space, Space::space, options.template at<kind::stream>()};
    const auto sign = [](message_spec& signed_one, const char* way, std::size_t chunk_bytes) {
      signed_one.sent_type = device_signature<T>(way, signed_one.out.size(), chunk_bytes);
      signed_one.received_type = device_signature<U>(way, signed_one.in.size(), chunk_bytes);
    };
    if constexpr (!Options::template has<kind::staging> && has_device_aware<Domain>) {
      if (is_device_aware(comm)) {
        device_aware_message<driver_type> device_aware{message};
        sign(device_aware.host, "carried", 0);
        return How::exchange(comm, device_aware, hosts, site);
      }
    }
    staged_message<driver_type> staged{message, chunk_bytes_of(options)};
    sign(staged.host, "staged", staged.chunk_bytes);
    return How::exchange(comm, staged, hosts, site);
  }

 private:
  template <class Options>
  using driver_of =
      typename std::remove_cvref_t<decltype(std::declval<const Options&>().template at<kind::stream>())>::driver_type;

  template <class T, class From>
  static std::span<const std::remove_const_t<T>> input(device_buffer<T, From> in) {
    return {in.data(), in.size()};
  }
  template <class T>
  static std::span<T> output(device_buffer<T, Space> out) {
    return {out.data(), out.size()};
  }
  template <class Options>
  static auto for_host(const Options& options) {
    return options.template without<kind::stream>().template without<kind::staging>();
  }
  template <class Options>
  static std::size_t chunk_bytes_of(const Options& options) {
    return options.template get<kind::staging>(cuda::staging{}).chunk_bytes;
  }

  template <plan::collective_kind Kind, class How, class From, class Domain, class Options, class HostOptions>
  static auto run(const communicator<Domain>& comm, const host_call& host, const Options& options,
                  const HostOptions& hosts, const std::source_location& site) {
    using driver_type = driver_of<Options>;
    const device_call_spec<driver_type> spec{host, From::space, Space::space, options.template at<kind::stream>()};
    if constexpr (may_be_device_aware<Kind, Options, Domain>) {
      if (is_device_aware(comm)) {
        return How::template run<Kind>(comm, device_aware_spec<driver_type>{spec}, hosts, site);
      }
    }
    return How::template run<Kind>(comm, staged_call_spec<driver_type>{spec, chunk_bytes_of(options)}, hosts, site);
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
