// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Waits until all ranks are here.
#pragma once

#include <hocket/collective/detail/call.hpp>
#include <hocket/collective/detail/misuse.hpp>
#include <hocket/collective/detail/move.hpp>
#include <hocket/collective/detail/run.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/request.hpp>

#include <cstddef>
#include <source_location>
#include <span>
#include <system_error>

HOCKET_BEGIN_NAMESPACE

struct barrier_t {
  static constexpr plan::collective_kind collective = plan::collective_kind::barrier;

  /// Returns when every rank of `comm` has called it.
  ///
  /// **Cost.** log2 p empty messages, one after the other. **Progress, threads, errors.** As for `all_reduce`.
  template <class Domain, call_options Options = options<>>
  void operator()(const communicator<Domain>& comm, const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    detail::deliver(detail::run_spec(comm, spec(options), options, site));
  }

  /// The same, with the error as a code instead of an exception.
  template <class Domain, call_options Options>
  void operator()(const communicator<Domain>& comm, const Options& options, std::error_code& code,
                  const std::source_location& site = std::source_location::current()) const noexcept {
    code = detail::run_spec(comm, spec(options), options, site).code();
  }

 private:
  friend struct barrier_async_t;

  template <class Options>
  static auto spec(const Options& options) {
    return detail::make_move_spec<collective>(std::span<const std::byte>(), std::span<std::byte>(), 0, options);
  }
};

struct barrier_async_t {
  /// As `barrier`, but returns at once: the request is over when every rank has called it.
  template <class Domain, call_options Options = options<>>
  request operator()(const communicator<Domain>& comm, const Options& options = {},
                     const std::source_location& site = std::source_location::current()) const {
    return detail::start_call(comm, barrier_t::spec(options), options, site);
  }
};

inline constexpr detail::with_misuse_diagnostics<barrier_t, detail::bare_form> barrier{};
inline constexpr detail::with_misuse_diagnostics<barrier_async_t, detail::bare_form> barrier_async{};

HOCKET_END_NAMESPACE
