// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What the compiler says of a call that fits no overload: in words, the first thing that is wrong with it.
///
/// Without this, it would list every overload with every constraint. Each collective's function object is an
/// `with_misuse_diagnostics<Calls>`: `Calls` has the overloads that do something, and this adds the one for calls that fit none of
/// them. Whether a call fits is answered silently by `valid_call`.
#pragma once

#include <hocket/collective/detail/call_forms.hpp>
#include <hocket/collective/host/explain_arguments.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/not_understood.hpp>

#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// Whether `collective(arguments...)` compiles: `static_assert(valid_call<decltype(all_reduce), communicator&, ...>)`.
template <class Collective, class... Arguments>
concept valid_call = std::is_invocable_v<const typename std::remove_cvref_t<Collective>::calls&, Arguments...>;

namespace detail {

/// `Calls`, and one overload more for every call that fits none of theirs.
template <class Calls, class Form>
struct with_misuse_diagnostics : Calls {
  using calls = Calls;
  using Calls::operator();

  template <class... Arguments>
    requires(!std::is_invocable_v<const Calls&, Arguments...>)
  not_understood operator()(Arguments&&...) const {
    using list = argument_list<Arguments...>;
    if constexpr (!explain_communicator<list>()) {
      return {};
    } else if constexpr ((is_device_buffer<std::remove_cvref_t<Arguments>> || ...)) {
      if constexpr (Form::template explain_device<list>()) explain_surplus<Arguments...>();
    } else if constexpr (Form::template explain<list>()) {
      if constexpr (explain_lifetime<Arguments&&...>()) explain_surplus<Arguments...>();
    }
    return {};
  }
};

}  // namespace detail
HOCKET_END_NAMESPACE
