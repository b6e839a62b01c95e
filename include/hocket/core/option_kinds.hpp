// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The kinds of properties that a call can have; core/options.hpp combines properties into one value. A separate
/// header, because code that declares a property needs only the kinds.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// The kinds of properties. One call can have one property of each kind.
namespace kind {
struct algorithm {};  ///< an algorithm
struct timeout {};    ///< a timeout
struct stop {};       ///< a stop token
struct wire {};       ///< a wire type
struct observer {};   ///< an observer of steps
struct exactness {};  ///< a level of exactness
struct integrity {};  ///< a checksum
struct agreement {};  ///< a hash that must be equal on all ranks
struct stream {};     ///< device stream
struct staging {};    ///< how calls copy device memory to the host and back
}  // namespace kind

/// A property of a call: a type with a `kind`.
template <class Property>
concept property = requires { typename Property::kind; };

HOCKET_END_NAMESPACE
