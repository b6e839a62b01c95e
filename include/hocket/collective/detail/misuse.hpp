// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a call that fits no overload: in words, the first thing that is wrong with it.
///
/// Without this, it would list every overload with every constraint. Each collective's function object is an
/// `with_misuse_diagnostics<Calls>`: `Calls` has the overloads that do something, and this adds the one for calls that fit none of
/// them. It is deleted, so that such calls are not invocable for std::is_invocable, requires-expressions and concepts, and a
/// template argument of it is the sentence: core/explanation.hpp.
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

/// What is wrong with a call that fits none of `Calls`. There is none of this for one that fits. Not consteval: then nvcc 13 does
/// not find the overload below.
template <class Calls, class Form, class... Arguments>
  requires(!std::is_invocable_v<const Calls&, Arguments...>)
constexpr auto why_refused() {
  return in_words([] { return explain_misuse<Form, Arguments...>(); });
}

/// `Calls`, and one overload more, deleted, for every call that fits none of theirs.
template <class Calls, class Form>
struct with_misuse_diagnostics : Calls {
  using calls = Calls;
  using Calls::operator();

  template <class... Arguments, auto Why = why_refused<Calls, Form, Arguments...>()>
  not_understood operator()(Arguments&&...) const = delete;
};

}  // namespace detail
HOCKET_END_NAMESPACE
