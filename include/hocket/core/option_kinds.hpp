// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a caller may say something about: the kinds of properties that core/options.hpp makes one value of. Apart from it, as
/// whoever declares a property needs no more.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// The kinds of properties. One call can have one property of each kind.
namespace kind {
struct algorithm {};
struct timeout {};
struct stop {};
struct wire {};
struct observer {};
struct exactness {};
struct integrity {};
struct agreement {};
struct stream {};   ///< of a device
struct staging {};  ///< how calls bring memory of a device to the host and back
}  // namespace kind

template <class Property>
concept property = requires { typename Property::kind; };

HOCKET_END_NAMESPACE
