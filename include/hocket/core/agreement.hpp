// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A hash of values that must be equal on all ranks of a call but are not arguments of it, such as the extents of the
/// tensor whose parts the call moves. The hash is part of the call's signature, so that a rank with other values gets a
/// `mismatch`.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The hash is never 0, because 0 means that no hash was given.
struct agreement_property {
  using kind = hocket::kind::agreement;
  std::uint32_t hash;
};

/// Returns the hash among the options, or 0 if there is none.
template <class Options>
constexpr std::uint32_t agreement_of(const Options& options) noexcept {
  return options.template get<kind::agreement>(agreement_property{0}).hash;
}

}  // namespace detail
HOCKET_END_NAMESPACE
