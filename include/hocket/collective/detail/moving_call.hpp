// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The shapes of collectives that move elements without combining them: see generate_call.hpp.
#pragma once

#include <hocket/collective/detail/call_diagnostics.hpp>
#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/move.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <source_location>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Runs a call on buffers in host memory that only moves elements. Out of line, so that call sites stay small.
template <plan::collective_kind Kind, class How, class Domain, class T, class Options, class... Counts>
HOCKET_NO_INLINE auto run_move(const communicator<Domain>& comm, std::span<const T> in, std::span<T> out, int root,
                               const Options& options, const std::source_location& site, const Counts&... lengths) {
  const host_call call = make_move<Kind, lengths_by<Counts...>>(in, out, root, blocks_of(lengths...));
  return How::template run<Kind>(comm, call, options, site);
}

/// Runs a call on buffers in host or device memory that only moves elements; `root` matters if the collective has one.
template <plan::collective_kind Kind, class How, class Domain, class In, class Out, class Options, class... Counts>
auto run_moved_pair(const communicator<Domain>& comm, In& in, Out& out, int root, const Options& options,
                    const std::source_location& site, const Counts&... lengths) {
  if constexpr (is_device_buffer<std::remove_const_t<Out>>) {
    return device_calls<typename Out::space>::template move<Kind, How, lengths_by<Counts...>>(
        comm, in, out, root, options, site, blocks_of(lengths...));
  } else {
    return run_move<Kind, How>(comm, as_input(in), as_output(out), root, options, site, lengths...);
  }
}

/// Buffers and options of a collective that moves elements from `In` to `Out`.
template <class In, class Out, plan::collective_kind Kind, class How, class Options>
concept moved_pair = buffer_pair<In, Out, How, Options> && accepted_with<Options, move_options<Kind>, Out>;

/// A buffer and options of a collective that copies the root's buffer to all ranks.
template <class Buffer, plan::collective_kind Kind, class Options>
concept broadcast_buffer = output_buffer<Buffer, Options> && element<element_of_buffer_t<Buffer>> &&
                           accepted_with<Options, move_options<Kind>, Buffer>;

/// (communicator, in, out, lengths..., options, code). `Counts` are the types of the lengths, if these are given.
template <plan::collective_kind Kind, class... Counts>
struct moving {
  using form = std::conditional_t<sizeof...(Counts) == 0, moving_form<Kind>, uneven_form<Kind, Counts...>>;

  template <class How>
  struct overloads {
    static constexpr plan::collective_kind collective = Kind;
    static constexpr detail::block_lengths block_lengths = lengths_by<Counts...>;

    template <class Domain, class In, class Out, call_options Options = options<>>
      requires moved_pair<In, Out, Kind, How, Options>
    typename How::result operator()(const communicator<Domain>& comm, In&& in, Out&& out, Counts... lengths,
                                    const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run_moved_pair<Kind, How>(comm, in, out, 0, options, site, lengths...));
    }
    template <class Domain, class In, class Out, call_options Options>
      requires How::blocks && moved_pair<In, Out, Kind, How, Options>
    void operator()(const communicator<Domain>& comm, In&& in, Out&& out, Counts... lengths, const Options& options,
                    std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run_moved_pair<Kind, How>(comm, in, out, 0, options, site, lengths...).code();
    }
  };
};

/// (communicator, in, out, lengths..., root, options, code). `Counts` are the types of the lengths, if these are given.
template <plan::collective_kind Kind, class... Counts>
struct rooted_moving {
  using form = std::conditional_t<sizeof...(Counts) == 0, rooted_moving_form<Kind>, uneven_form<Kind, Counts...>>;

  template <class How>
  struct overloads {
    static constexpr plan::collective_kind collective = Kind;
    static constexpr detail::block_lengths block_lengths = lengths_by<Counts...>;

    template <class Domain, class In, class Out, call_options Options = options<>>
      requires moved_pair<In, Out, Kind, How, Options>
    typename How::result operator()(const communicator<Domain>& comm, In&& in, Out&& out, Counts... lengths,
                                    root at = {}, const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run_moved_pair<Kind, How>(comm, in, out, at.rank, options, site, lengths...));
    }
    template <class Domain, class In, class Out, call_options Options>
      requires How::blocks && moved_pair<In, Out, Kind, How, Options>
    void operator()(const communicator<Domain>& comm, In&& in, Out&& out, Counts... lengths, root at,
                    const Options& options, std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run_moved_pair<Kind, How>(comm, in, out, at.rank, options, site, lengths...).code();
    }
  };
};

/// (communicator, buffer, root, options, code)
template <plan::collective_kind Kind>
struct rooted {
  using form = rooted_form<Kind>;

  template <class How>
  struct overloads {
    static constexpr plan::collective_kind collective = Kind;

    template <class Domain, class Buffer, call_options Options = options<>>
      requires broadcast_buffer<Buffer, Kind, Options>
    typename How::result operator()(const communicator<Domain>& comm, Buffer&& buffer, root from = {},
                                    const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run(comm, buffer, from, options, site));
    }
    template <class Domain, class Buffer, call_options Options>
      requires How::blocks && broadcast_buffer<Buffer, Kind, Options>
    void operator()(const communicator<Domain>& comm, Buffer&& buffer, root from, const Options& options,
                    std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run(comm, buffer, from, options, site).code();
    }

   private:
    template <class Domain, class Buffer, class Options>
    static auto run(const communicator<Domain>& comm, Buffer& buffer, root from, const Options& options,
                    const std::source_location& site) {
      if constexpr (is_device_buffer<std::remove_const_t<Buffer>>) {
        return device_calls<typename Buffer::space>::template broadcast<How>(comm, buffer, from, options, site);
      } else {
        const std::span<const element_type_t<Buffer>> nothing;
        return run_move<Kind, How>(comm, nothing, as_output(buffer), from.rank, options, site);
      }
    }
  };
};

/// (communicator, options, code)
template <plan::collective_kind Kind>
struct bare {
  using form = bare_form<Kind>;

  template <class How>
  struct overloads {
    static constexpr plan::collective_kind collective = Kind;

    template <class Domain, call_options Options = options<>>
      requires accepted_with<Options, move_options<Kind>, void>
    typename How::result operator()(const communicator<Domain>& comm, const Options& options = {},
                                    const std::source_location& site = std::source_location::current()) const {
      return How::give(run(comm, options, site));
    }
    template <class Domain, call_options Options>
      requires How::blocks && accepted_with<Options, move_options<Kind>, void>
    void operator()(const communicator<Domain>& comm, const Options& options, std::error_code& code,
                    const std::source_location& site = std::source_location::current()) const noexcept {
      code = run(comm, options, site).code();
    }

   private:
    template <class Domain, class Options>
    static auto run(const communicator<Domain>& comm, const Options& options, const std::source_location& site) {
      return run_move<Kind, How>(comm, std::span<const std::byte>(), std::span<std::byte>(), 0, options, site);
    }
  };
};

}  // namespace detail
HOCKET_END_NAMESPACE
