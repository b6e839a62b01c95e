// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What must be equal on all ranks of a call and shows in none of its arguments, such as the extents of the tensor that
/// the call moves parts of: a number that goes into the call's signature, so that ranks that differ in it find a
/// `mismatch`.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>

#include <cstdint>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Never 0, which stands for nothing.
struct agreement_property {
  using kind = hocket::kind::agreement;
  std::uint32_t hash;
};

/// The number among the options, or 0.
template <class Options>
constexpr std::uint32_t agreement_of(const Options& options) noexcept {
  return options.template get<kind::agreement>(agreement_property{0}).hash;
}

}  // namespace detail
HOCKET_END_NAMESPACE
