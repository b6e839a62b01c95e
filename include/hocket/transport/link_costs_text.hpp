// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Costs of links as text, as in the file that the variable `HOCKET_CONSTANTS` names. A line is empty, a comment, which
/// begins with #, or `name = value`, for each member of `link_costs`. The last line ends with a line feed, too.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/transport/link_costs.hpp>

#include <string>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace transport {

/// Returns the lines of all costs. Reading them yields equal costs.
HOCKET_DECL std::string to_text(const link_costs& costs);

/// Returns what is wrong with the text and in which line, or an empty string. Then `result` has the costs.
HOCKET_DECL std::string read_costs(std::string_view text, link_costs& result);

/// Returns the costs in a few words, for people.
HOCKET_DECL std::string describe(const link_costs& costs);

}  // namespace transport
HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/transport/impl/link_costs_text.ipp>
#endif
