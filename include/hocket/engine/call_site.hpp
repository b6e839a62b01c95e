// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Operation, source line and time limit of a call, and how it is cancelled: for waits and for error messages.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/function_view.hpp>

#include <chrono>
#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns whether the caller wants the call to end.
using stop_query = function_view<bool()>;

/// Operation, source line and time limit of a call.
struct call_site {
  const char* operation = "";
  std::source_location site{};
  std::chrono::nanoseconds timeout{};
};

/// For calls that have no stop token.
struct never_stopped {
  constexpr bool operator()() const noexcept { return false; }
};

/// Fills in the parts of the error context that only the call knows.
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
