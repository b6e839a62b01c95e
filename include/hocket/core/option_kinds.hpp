// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The kinds of properties that a call can have; core/options.hpp combines properties into one value. This header is
/// separate, because code that declares a property needs only the kinds.
#pragma once

#include <hocket/core/config.hpp>

HOCKET_BEGIN_NAMESPACE

/// The kinds of properties. A call can have at most one property of each kind.
namespace kind {
struct algorithm {};  ///< which algorithm runs the call
struct timeout {};    ///< how long the call may wait
struct stop {};       ///< a stop token that ends the call
struct wire {};       ///< the type in which elements are sent
struct observer {};   ///< an observer of completed actions
struct exactness {};  ///< a level of exactness
struct integrity {};  ///< whether messages carry a checksum
struct agreement {};  ///< a hash that must be equal on all ranks
struct stream {};     ///< the device stream that orders the call's reads and writes
struct staging {};    ///< how calls copy device memory to the host and back
}  // namespace kind

/// A property of a call: a type with a `kind`.
template <class Property>
concept property = requires { typename Property::kind; };

HOCKET_END_NAMESPACE
