// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a refused call gives, so that the sentence that refuses it is the compiler's first error. Functions that give it
/// are declared as `auto`: so the compiler looks into them, and finds the sentence, before it looks at what is done with
/// their result. Deleted functions name it as what they would give, for the same reason.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// What a call gives that was not understood: anything, so that the compiler does not speak of the result first.
struct not_understood {
  template <class Result>
  operator Result() const;
};

}  // namespace detail
HOCKET_END_NAMESPACE
