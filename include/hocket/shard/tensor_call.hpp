// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What may follow the tensors of a call that communicates: for constraints, and for those who explain what does not fit.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <source_location>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether these may follow: options, and the place of the call.
template <class... Rest>
inline constexpr bool ends_tensor_call = sizeof...(Rest) == 0;
template <class Options>
inline constexpr bool ends_tensor_call<Options> = call_options<Options>;
template <class Options>
inline constexpr bool ends_tensor_call<Options, std::source_location> = call_options<Options>;

}  // namespace detail
HOCKET_END_NAMESPACE
