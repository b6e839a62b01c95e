// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The last calls on a communicator, kept so that they can be told to a peer whose call does not match.
///
/// Written by every call that is not over within a moment, so a record is a handful of stores: words are found only when
/// somebody asks.
#pragma once

#include <hocket/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// One call. All text is of static duration.
struct call_record {
  std::uint32_t sequence = 0;    ///< of its first operation
  std::uint32_t operations = 0;  ///< that it consists of
  std::uint32_t signature = 0;
  const char* operation = "";
  const char* types = "";  ///< as the compiler writes them: see `type_text`
  const char* plan = "";
  std::uint64_t elements = 0;  ///< of a block
  int root = 0;
  std::source_location site{};

  bool covers(std::uint32_t number) const noexcept { return number - sequence < operations; }
};

/// "float, std::plus<void>" out of the `__PRETTY_FUNCTION__` of a template whose parameter pack is named Types.
inline std::string_view type_text(std::string_view pretty) noexcept {
  const std::string_view before = "Types = ";
  const std::size_t begin = pretty.find(before);
  if (begin == std::string_view::npos) return {};
  pretty.remove_prefix(begin + before.size() + 1);
  const char close = pretty.data()[-1] == '{' ? '}' : '>';
  int depth = 0;
  for (std::size_t i = 0; i < pretty.size(); ++i) {
    const bool opens = pretty[i] == '<' || pretty[i] == '{';
    if (pretty[i] == close && depth == 0) return pretty.substr(0, i);
    depth += opens ? 1 : pretty[i] == '>' || pretty[i] == '}' ? -1 : 0;
  }
  return pretty;
}

/// "all_reduce of 15 elements of (float, std::plus<void>) by ring, called at train.cpp:30".
inline std::string describe(const call_record& call) {
  std::string text = std::string(call.operation) + " of " + std::to_string(call.elements) + " elements of (" +
                     std::string(type_text(call.types)) + ") by " + call.plan;
  if (call.root != 0) text += " from root " + std::to_string(call.root);
  return text + ", called at " + call.site.file_name() + ':' + std::to_string(call.site.line());
}

class call_log {
 public:
  void add(const call_record& call) {
    if (calls_.size() < kept) {
      calls_.push_back(call);
    } else {
      calls_[next_++ % kept] = call;
    }
  }

  /// The call that operation `sequence` belongs to; null if it is not known, or not any more.
  const call_record* find(std::uint32_t sequence) const noexcept {
    for (const call_record& each : calls_) {
      if (each.covers(sequence)) return &each;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kept = 32;

  std::vector<call_record> calls_;
  std::size_t next_ = 0;  ///< to be overwritten, once there are as many as are kept
};

}  // namespace detail
HOCKET_END_NAMESPACE
