// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The result type of rejected calls, so that the explanation of the rejection is the compiler's first error. Functions
/// that return it are declared `auto`: the compiler instantiates their bodies, and finds the static_assert, before it
/// checks how the result is used. Deleted functions name it as their return type, for the same reason.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Converts to any type, so that the compiler does not complain about the use of the result first.
struct not_understood {
  template <class Result>
  operator Result() const;
};

}  // namespace detail
HOCKET_END_NAMESPACE
