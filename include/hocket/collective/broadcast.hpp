// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Gives every rank what one rank has.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/device_calls.hpp>
#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/detail/move.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>

#include <source_location>
#include <span>
#include <system_error>

HOCKET_BEGIN_NAMESPACE

struct broadcast_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::broadcast;

  /// Leaves in `buffer`, on every rank, what it held on rank `from.rank`.
  ///
  /// Collective: every rank must pass an equal `buffer.size()`, element type, root and algorithm.
  /// **Cost.** p ranks: binomial log2 p messages of the whole vector, one after the other; direct one step over peer
  ///   pointers.
  /// **Progress, threads, errors.** As for `all_reduce`.
  template <class Domain, writable_buffer Buffer, call_options Options = options<>>
    requires element<element_type_t<Buffer>>
  void operator()(const communicator<Domain>& comm, Buffer&& buffer, root from = {}, const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_spec(comm, spec(detail::as_output(buffer), from, options), options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, writable_buffer Buffer, call_options Options>
    requires element<element_type_t<Buffer>>
  void operator()(const communicator<Domain>& comm, Buffer&& buffer, root from, const Options& options,
                  std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = detail::run_spec(comm, spec(detail::as_output(buffer), from, options), options, site).code();
  }

 private:
  friend struct broadcast_async_t;

  template <class T, class Options>
  static auto spec(std::span<T> buffer, root from, const Options& options) {
    return detail::make_move_spec<collective>(std::span<const T>(), buffer, from.rank, options);
  }
};

struct broadcast_async_t {
  /// As `broadcast`, but returns at once. The buffer belongs to the operation until the request is over.
  template <class Domain, writable_buffer Buffer, call_options Options = options<>>
    requires element<element_type_t<Buffer>>
  request operator()(const communicator<Domain>& comm, Buffer&& buffer, root from = {}, const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_call(comm, broadcast_t::spec(detail::as_output(buffer), from, options), options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<detail::device_rooted<broadcast_t, detail::blocking>,
                                                 detail::rooted_form>
    broadcast{};
inline constexpr detail::with_misuse_diagnostics<detail::device_rooted<broadcast_async_t, detail::starting>,
                                                 detail::rooted_form>
    broadcast_async{};

HOCKET_END_NAMESPACE
