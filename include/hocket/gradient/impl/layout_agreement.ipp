// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/gradient/layout_agreement.hpp>: layouts as text.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/gradient/layout_agreement.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <cstddef>
#include <string>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace detail {

HOCKET_DECL std::string text_of(const parameter_layout& layout) {
  const bool forward = layout.limits().order == bucket_order::forward;
  std::string text = concat({"buckets that are reduced in ", forward ? "forward" : "backward", " order\n"});
  for (std::size_t i = 0; i < layout.parameters(); ++i) text += layout.describe(i) + '\n';
  return text;
}

HOCKET_DECL std::string first_difference(std::string_view one, std::string_view other, const std::string& one_is,
                                         const std::string& other_is) {
  std::size_t begin = 0;  // of the first line that differs
  for (std::size_t at = 0; at < one.size() && at < other.size() && one[at] == other[at]; ++at) {
    if (one[at] == '\n') begin = at + 1;
  }
  const auto line = [&](std::string_view text) {
    const std::string_view rest = text.substr(begin);
    return rest.empty() ? std::string("no more parameters") : std::string(rest.substr(0, rest.find('\n')));
  };
  return concat({one_is, " has ", line(one), ", ", other_is, " has ", line(other)});
}

HOCKET_DECL void raise_difference(std::string_view first, std::string_view other, std::size_t culprit,
                                  const error_context& context) {
  raise(errc::mismatch,
        concat({"the layouts of ranks differ: ", first_difference(first, other, "rank 0", concat({"rank ", culprit})),
                "; pass the same parameters, in the same order, and the same bucket limits on all ranks"}),
        context);
}

}  // namespace detail
HOCKET_END_NAMESPACE
