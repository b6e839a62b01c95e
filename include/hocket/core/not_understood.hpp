// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The result type of deleted overloads, so that the explanation of the rejected call is the compiler's first error: a
/// use of the result causes no error of its own.
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
