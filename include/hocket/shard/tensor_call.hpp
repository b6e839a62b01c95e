// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The arguments that may follow the tensors of a call that communicates, for constraints and error messages.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether these arguments may follow: options, and the source location of the call.
template <class... Rest>
inline constexpr bool ends_tensor_call = sizeof...(Rest) == 0;
template <class Options>
inline constexpr bool ends_tensor_call<Options> = call_options<Options>;
template <class Options>
inline constexpr bool ends_tensor_call<Options, std::source_location> = call_options<Options>;

}  // namespace detail
HOCKET_END_NAMESPACE
