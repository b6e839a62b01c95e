// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Who made a call, how long it may take, and how it is stopped: what waits, and what reports a failure, is told of it so.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/function_view.hpp>

#include <chrono>
#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Says whether the caller wants the call to end.
using stop_query = function_view<bool()>;

/// Who called, and how long it may take.
struct call_site {
  const char* operation = "";
  std::source_location site{};
  std::chrono::nanoseconds timeout{};
};

/// For calls that have no stop token.
struct never_stopped {
  constexpr bool operator()() const noexcept { return false; }
};

/// Fills in what only the call knows.
template <class State>
failure in_context(failure cause, const State& state, const call_site& call) {
  error_context& context = cause.context;
  if (context.operation == nullptr) context.operation = call.operation;
  if (context.site.line() == 0) context.site = call.site;
  if (context.rank < 0) {
    context.rank = state.rank();
    context.ranks = state.size();
  }
  return cause;
}

}  // namespace detail
HOCKET_END_NAMESPACE
