// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The shape of collectives that combine elements: see generate_call.hpp.
#pragma once

#include <hocket/collective/detail/call_diagnostics.hpp>
#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <functional>
#include <source_location>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Runs a reduction of buffers in host memory by the effective operation. Out of line, so that call sites stay small.
template <plan::collective_kind Kind, class How, class Domain, class T, class Op, class Options, class... Counts>
HOCKET_NO_INLINE auto run_reduction(const communicator<Domain>& comm, std::span<const T> in, std::span<T> out,
                                    const Op& op, int root, const Options& options, const std::source_location& site,
                                    const Counts&... lengths) {
  const host_call call = make_reduction<Kind, lengths_by<Counts...>>(in, out, op, root, blocks_of(lengths...));
  return How::template run<Kind>(comm, call, options, site);
}

/// The same, possibly by a faster path: all_reduce.hpp specializes it.
template <plan::collective_kind Kind, class How>
struct host_reduction {
  template <class Domain, class T, class Op, class Options, class... Counts>
  static auto run(const communicator<Domain>& comm, std::span<const T> in, std::span<T> out, const Op& op, int root,
                  const Options& options, const std::source_location& site, const Counts&... lengths) {
    return run_reduction<Kind, How>(comm, in, out, op, root, options, site, lengths...);
  }
};

/// True for `in_place(...)` of a buffer in host memory, or of a tagged buffer that a call with these options can write.
template <class Buffer, class Options>
inline constexpr bool is_in_place_argument = false;
template <class T, class Options>
inline constexpr bool is_in_place_argument<in_place_buffer<T>, Options> = true;
template <class T, class Space, class Options>
inline constexpr bool is_in_place_argument<device_in_place<T, Space>, Options> =
    device_output<device_buffer<T, Space>, Options>;

template <class Buffer, class Options>
concept in_place_argument = is_in_place_argument<std::remove_cvref_t<Buffer>, Options>;

template <class Buffer>
using element_in_place_t = typename decltype(std::remove_cvref_t<Buffer>::elements)::value_type;

/// Buffers, operation and options of a reduction of `In` to `Out`.
template <class In, class Out, plan::collective_kind Kind, class How, class Op, class Options>
concept reduced_pair = buffer_pair<In, Out, How, Options> && reduction_for<Op, element_of_buffer_t<Out>> &&
                       accepted_with<Options, reduction_options<Kind, Op, element_of_buffer_t<Out>>, Out>;

/// The same for `in_place(...)`.
template <class Buffer, plan::collective_kind Kind, class Op, class Options>
concept reduced_in_place = in_place_argument<Buffer, Options> && reduction_for<Op, element_in_place_t<Buffer>> &&
                           accepted_with<Options, reduction_options<Kind, Op, element_in_place_t<Buffer>>, Buffer>;

/// Runs a reduction of host or device memory; `root` matters if the collective has one.
template <plan::collective_kind Kind, class How, class Domain, class In, class Out, class Op, class Options,
          class... Counts>
auto run_reduced_pair(const communicator<Domain>& comm, In& in, Out& out, const Op& op, int root,
                      const Options& options, const std::source_location& site, const Counts&... lengths) {
  if constexpr (is_device_buffer<std::remove_const_t<Out>>) {
    return device_calls<typename Out::space>::template reduce<Kind, How, lengths_by<Counts...>>(
        comm, in, out, op, root, options, site, blocks_of(lengths...));
  } else {
    using element_type = element_type_t<Out>;
    const auto effective = effective_operation<Op, element_type>(op, options);
    return host_reduction<Kind, How>::run(comm, as_input(in), as_output(out), effective, root, options, site,
                                          lengths...);
  }
}

/// (communicator, in, out, op, root, options, code) or (communicator, in_place(buffer), op, root, options, code).
template <plan::collective_kind Kind>
struct rooted_reducing {
  using form = reduction_form<Kind>;

  template <class How>
  struct overloads {
    static constexpr plan::collective_kind collective = Kind;

    template <class Domain, class In, class Out, class Op = std::plus<>, call_options Options = options<>>
      requires reduced_pair<In, Out, Kind, How, Op, Options>
    typename How::result operator()(const communicator<Domain>& comm, In&& in, Out&& out, const Op& op = {},
                                    root to = {}, const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run_reduced_pair<Kind, How>(comm, in, out, op, to.rank, options, site));
    }
    template <class Domain, class In, class Out, class Op, call_options Options>
      requires How::blocks && reduced_pair<In, Out, Kind, How, Op, Options>
    void operator()(const communicator<Domain>& comm, In&& in, Out&& out, const Op& op, root to, const Options& options,
                    std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run_reduced_pair<Kind, How>(comm, in, out, op, to.rank, options, site).code();
    }

    template <class Domain, class Buffer, class Op = std::plus<>, call_options Options = options<>>
      requires reduced_in_place<Buffer, Kind, Op, Options>
    typename How::result operator()(const communicator<Domain>& comm, Buffer&& buffer, const Op& op = {}, root to = {},
                                    const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run_reduced_pair<Kind, How>(comm, buffer.elements, buffer.elements, op, to.rank, options, site));
    }
    template <class Domain, class Buffer, class Op, call_options Options>
      requires How::blocks && reduced_in_place<Buffer, Kind, Op, Options>
    void operator()(const communicator<Domain>& comm, Buffer&& buffer, const Op& op, root to, const Options& options,
                    std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run_reduced_pair<Kind, How>(comm, buffer.elements, buffer.elements, op, to.rank, options, site).code();
    }
  };
};

/// (communicator, in, out, lengths..., op, options, code), and for `all_reduce` (communicator, in_place(buffer), op,
/// options, code). `Counts` are the types of the lengths, if these are given.
template <plan::collective_kind Kind, class... Counts>
struct reducing {
  using form = std::conditional_t<sizeof...(Counts) == 0, reduction_form<Kind>, uneven_form<Kind, Counts...>>;
  static constexpr bool has_in_place = Kind == plan::collective_kind::all_reduce;

  template <class How>
  struct overloads {
    static constexpr plan::collective_kind collective = Kind;
    static constexpr detail::block_lengths block_lengths = lengths_by<Counts...>;

    template <class Domain, class In, class Out, class Op = std::plus<>, call_options Options = options<>>
      requires reduced_pair<In, Out, Kind, How, Op, Options>
    typename How::result operator()(const communicator<Domain>& comm, In&& in, Out&& out, Counts... lengths,
                                    const Op& op = {}, const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run_reduced_pair<Kind, How>(comm, in, out, op, 0, options, site, lengths...));
    }
    template <class Domain, class In, class Out, class Op, call_options Options>
      requires How::blocks && reduced_pair<In, Out, Kind, How, Op, Options>
    void operator()(const communicator<Domain>& comm, In&& in, Out&& out, Counts... lengths, const Op& op,
                    const Options& options, std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run_reduced_pair<Kind, How>(comm, in, out, op, 0, options, site, lengths...).code();
    }

    template <class Domain, class Buffer, class Op = std::plus<>, call_options Options = options<>>
      requires has_in_place && reduced_in_place<Buffer, Kind, Op, Options>
    typename How::result operator()(const communicator<Domain>& comm, Buffer&& buffer, const Op& op = {},
                                    const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run_reduced_pair<Kind, How>(comm, buffer.elements, buffer.elements, op, 0, options, site));
    }
    template <class Domain, class Buffer, class Op, call_options Options>
      requires How::blocks && has_in_place && reduced_in_place<Buffer, Kind, Op, Options>
    void operator()(const communicator<Domain>& comm, Buffer&& buffer, const Op& op, const Options& options,
                    std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run_reduced_pair<Kind, How>(comm, buffer.elements, buffer.elements, op, 0, options, site).code();
    }
  };
};

}  // namespace detail
HOCKET_END_NAMESPACE
