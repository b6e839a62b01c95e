// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostic for a call that matches no overload: one sentence about its first mistake.
///
/// Without it, the compiler would list every overload with every constraint. The function object of each collective is
/// a `with_misuse_diagnostics<Calls>`: `Calls` has the real overloads, and this adds one for calls that match none.
/// The added overload is deleted, so that such calls are not invocable for std::is_invocable, requires-expressions and
/// concepts. The sentence is one of its template arguments: see core/explanation.hpp.
#pragma once

#include <hocket/collective/detail/call_diagnostics.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/not_understood.hpp>

#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// Whether `collective(arguments...)` compiles: `static_assert(valid_call<decltype(all_reduce), communicator&, ...>)`.
template <class Collective, class... Arguments>
concept valid_call = std::is_invocable_v<const typename std::remove_cvref_t<Collective>::calls&, Arguments...>;

namespace detail {

/// Returns the mistake in a call that matches none of `Calls`; takes no part in overload resolution otherwise. Not
/// consteval, because nvcc 13 would then not find the overload below.
template <class Calls, class Form, class... Arguments>
  requires(!std::is_invocable_v<const Calls&, Arguments...>)
constexpr auto why_refused() {
  return make_explanation([] { return explain_misuse<Form, Arguments...>(); });
}

/// `Calls` and one more, deleted overload for every call that matches none of theirs.
template <class Calls, class Form>
struct with_misuse_diagnostics : Calls {
  using calls = Calls;
  using Calls::operator();

  template <class... Arguments, auto Why = why_refused<Calls, Form, Arguments...>()>
  not_understood operator()(Arguments&&...) const = delete;
};

}  // namespace detail
HOCKET_END_NAMESPACE
