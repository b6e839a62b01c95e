// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Definitions of <hocket/transport/link_costs_text.hpp>.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/transport/cost_members.hpp>
#include <hocket/transport/link_costs.hpp>
#include <hocket/transport/link_costs_text.hpp>

#include <charconv>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

HOCKET_BEGIN_NAMESPACE
namespace transport {
namespace detail {

inline constexpr std::size_t cost_member_count = sizeof cost_members / sizeof cost_members[0];
/// The only member that is a number of bytes, and the number after those of the others.
inline constexpr const char* eager_name = "eager_bytes";

inline std::string_view trimmed(std::string_view text) noexcept {
  constexpr const char* blank = " \t\r";
  const std::size_t begin = text.find_first_not_of(blank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blank) - begin + 1);
}

/// Returns the index of the member `name`, or a larger number than any.
inline std::size_t member_index(std::string_view name) noexcept {
  std::size_t i = 0;
  while (i < cost_member_count && name != cost_members[i].name) ++i;
  return i < cost_member_count || name == eager_name ? i : i + 1;
}

template <class Number>
bool read_number(std::string_view text, Number& result) noexcept {
  const auto end = std::from_chars(text.data(), text.data() + text.size(), result);
  return end.ec == std::errc() && end.ptr == text.data() + text.size();
}

/// Reads a line, and sets the bit of its member in `found`. Returns what is wrong with it.
inline std::string read_cost(std::string_view line, link_costs& result, unsigned& found) {
  const std::size_t equals = line.find('=');
  if (equals == std::string_view::npos) return "it must be 'name = value'";
  const std::string_view name = trimmed(line.substr(0, equals)), text = trimmed(line.substr(equals + 1));
  const std::size_t member = member_index(name);
  if (member > cost_member_count) return hocket::detail::concat({"'", name, "' is not the name of a cost"});
  if ((found >> member & 1U) != 0) return hocket::detail::concat({"'", name, "' has a value already"});
  found |= 1U << member;
  if (member == cost_member_count) {
    if (read_number(text, result.eager_bytes)) return {};
    return hocket::detail::concat({"eager_bytes is '", text, "'; it must be a number of bytes"});
  }
  double& value = result.*cost_members[member].value;
  if (read_number(text, value) && value >= 0 && value <= std::numeric_limits<double>::max()) return {};
  return hocket::detail::concat({name, " is '", text, "'; it must be a number, 0 or more"});
}

}  // namespace detail

HOCKET_DECL std::string to_text(const link_costs& costs) {
  std::string text;
  for (const detail::cost_member& each : detail::cost_members) {
    char digits[32];  // the shortest ones that yield the number again, whatever the locale
    const char* const end = std::to_chars(digits, digits + sizeof digits, costs.*each.value).ptr;
    text += hocket::detail::concat({"# ", each.meaning, "\n", each.name, " = ",
                                    std::string_view(digits, static_cast<std::size_t>(end - digits)), "\n"});
  }
  text += hocket::detail::concat(
      {"# bytes; a longer message waits for its receiver\n", detail::eager_name, " = ", costs.eager_bytes, "\n"});
  return text;
}

HOCKET_DECL std::string read_costs(std::string_view text, link_costs& result) {
  unsigned found = 0;
  const bool has_end = text.ends_with('\n');
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = detail::trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::string wrong = detail::read_cost(line, result, found);
    if (!wrong.empty()) return hocket::detail::concat({"line ", number, ": ", wrong});
  }
  for (std::size_t i = 0; i <= detail::cost_member_count; ++i) {
    if ((found >> i & 1U) != 0) continue;
    const char* const name = i < detail::cost_member_count ? detail::cost_members[i].name : detail::eager_name;
    return hocket::detail::concat({name, " is missing"});
  }
  // A number may be complete or not if nothing follows it.
  return has_end ? "" : "the text may be truncated: its last line must end with a line feed";
}

HOCKET_DECL std::string describe(const link_costs& costs) {
  constexpr double micro = 1e6, kibi = 1024;
  std::string eager;
  if (costs.eager_bytes != std::numeric_limits<std::size_t>::max()) {
    eager = hocket::detail::concat({" up to ", costs.eager_bytes, " bytes"});
  }
  char text[320];
  std::snprintf(text, sizeof text,
                "message %.3g us + %.3g us/KiB%s, flag %.3g us, reading a peer %.3g us + %.3g us/KiB, what it has just "
                "written + %.3g us/KiB up to %.0f bytes, combining %.3g us/KiB",
                costs.message_latency * micro, costs.message_per_byte * micro * kibi, eager.c_str(),
                costs.flag_latency * micro, costs.load_latency * micro, costs.load_per_byte * micro * kibi,
                costs.fresh_load_per_byte * micro * kibi, costs.fresh_bytes, costs.reduce_per_byte * micro * kibi);
  return text;
}

}  // namespace transport
HOCKET_END_NAMESPACE
