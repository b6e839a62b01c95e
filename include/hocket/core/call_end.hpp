// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The arguments that may end a call: options, and the call's source location. Constraints and explanations ask for them.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// True if these arguments may follow the operands of a call.
template <class... Rest>
inline constexpr bool ends_call = sizeof...(Rest) == 0;
template <class Options>
inline constexpr bool ends_call<Options> = call_options<Options>;
template <class Options>
inline constexpr bool ends_call<Options, std::source_location> = call_options<Options>;

/// The type of the options among the arguments that end a call; `options<>` if there are none.
template <class... Rest>
struct options_at_end {
  using type = options<>;
};
template <class Options, class... Rest>
struct options_at_end<Options, Rest...> {
  using type = Options;
};
template <class... Rest>
using options_at_end_t = typename options_at_end<Rest...>::type;

}  // namespace detail
HOCKET_END_NAMESPACE
