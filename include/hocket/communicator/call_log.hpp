// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The last calls on a communicator, kept so that they can be told to a peer whose call does not match, and written
/// down after a failure.
///
/// Every call is entered, so an entry is a handful of stores: words and times of day are found only when somebody asks.
/// The processor's counter is looked at once in a short call. Calls are entered when they have sent what they can send:
/// what is done while the peers' part is on its way costs nothing.
#pragma once

#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// When a call began and ended, in ticks.
struct call_times {
  static constexpr std::uint64_t soon = 1;  ///< some microseconds after it had begun

  std::uint64_t begun = 0;  ///< or began to wait
  std::uint64_t ended = 0;  ///< 0: it has not

  static call_times from_now(bool over = false) noexcept { return {platform::ticks(), over ? soon : 0}; }
};

/// One call. All text is of static duration.
struct call_record {
  std::uint32_t sequence = 0;    ///< of its first operation
  std::uint32_t operations = 0;  ///< that it consists of
  std::uint32_t signature = 0;
  std::uint32_t history = 0;  ///< `call_log::history()` before it
  const char* operation = "";
  const char* types = "";  ///< as the compiler writes them: see `type_text`; empty if they are not the caller's
  const char* plan = "";
  std::uint64_t elements = 0;  ///< of a block, the longest if they differ
  int root = 0;
  std::source_location site{};
  call_times times{};
#if HOCKET_ASSERTION_LEVEL >= 3
  std::uint64_t description = 0;  ///< what `signature` stands for, in more bits: see collective/host/comparison.hpp
#endif

  bool covers(std::uint32_t number) const noexcept { return number - sequence < operations; }
};

/// One message outside any plan, or one each way.
struct message_record {
  const char* operation = "";
  int to = -1;    ///< -1: nothing is sent
  int from = -1;  ///< -1: nothing is received
  std::uint32_t tag = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;  ///< at most
  std::uint32_t after = 0;           ///< the last operation that was numbered before it
  std::source_location site{};
  call_times times{};
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
  const std::string_view name = call.operation;
  const std::string site = concat({", called at ", call.site.file_name(), ':', call.site.line()});
  if (*call.types == '\0') return concat({name, site});  // what it gathers is not the caller's
  if (name == "barrier") return concat({"barrier by ", call.plan, site});
  const bool differ = name.ends_with("_v");
  std::string text = concat({name, " of "});
  if (name != "all_to_all_v") append(text, {differ ? "up to " : "", call.elements, ' '});
  append(text, {"elements ", differ ? "for each rank " : "", "of (", type_text(call.types), ") by ", call.plan});
  if (name == "broadcast") append(text, {" from root ", call.root});
  return text + site;
}

/// "send of 20 bytes, called at train.cpp:30".
inline std::string describe(const message_record& message) {
  const std::uint64_t bytes = message.to >= 0 ? message.sent_bytes : message.received_bytes;
  return concat(
      {message.operation, " of ", bytes, " bytes, called at ", message.site.file_name(), ':', message.site.line()});
}

/// The last so many of a row of records. Grows only as far as it is used: a simulation has thousands of ranks.
template <class Record, std::size_t Kept>
class last_of {
 public:
  /// The next one, to be filled in: it may hold an old one.
  Record& next() {
    const std::size_t at = count_ % Kept;
    if (count_ < Kept && at == records_.size()) records_.emplace_back();
    ++count_;
    return records_[at];
  }
  /// How many there were.
  std::uint64_t count() const noexcept { return count_; }
  /// The one before which there were `number` others; null if it is not kept any more.
  Record* at(std::uint64_t number) noexcept {
    return number < count_ && count_ - number <= Kept ? &records_[number % Kept] : nullptr;
  }
  const Record* at(std::uint64_t number) const noexcept { return const_cast<last_of*>(this)->at(number); }
  /// The number of the oldest one that is kept.
  std::uint64_t oldest() const noexcept { return count_ > Kept ? count_ - Kept : 0; }

 private:
  std::vector<Record> records_;
  std::uint64_t count_ = 0;
};

class call_log {
 public:
  static constexpr std::size_t retained_calls = 32;
  static constexpr std::size_t retained_messages = 16;
  /// What calls are compared by; messages outside any plan are kept anyway.
  static constexpr bool retains_calls = HOCKET_MISMATCH_DETECTION != 0;

  /// Stands for all calls so far, whether they are kept or not; equal on all ranks as long as these are.
  std::uint32_t history() const noexcept { return history_; }
  /// A call begins. Returns what its flags and messages show.
  HOCKET_ALWAYS_INLINE std::uint32_t extend_history(std::uint32_t signature) noexcept {
    return history_ = running_signature(history_, signature);
  }

  /// Enters a call that begins now. Returns its number.
  HOCKET_ALWAYS_INLINE std::uint64_t add(const call_record& call) {
    if constexpr (!retains_calls) return 0;
    calls_.next() = call;
    return calls_.count() - 1;
  }
  HOCKET_ALWAYS_INLINE std::uint64_t add(const message_record& message) {
    messages_.next() = message;
    return messages_.count() - 1;
  }

  /// Enters a call that will most likely be over within a moment, as if it were: else `reopen_last` says so. On the way
  /// of the shortest calls of all.
  HOCKET_ALWAYS_INLINE void add_brief(const call_record& call) {
    if constexpr (!retains_calls) return;
    call_record& entered = calls_.next();
    entered = call;
    entered.times = {platform::ticks(), call_times::soon};
  }
  /// The last call that was entered is not over. Returns its number.
  std::uint64_t reopen_last() noexcept {
    if constexpr (!retains_calls) return 0;
    const std::uint64_t number = calls_.count() - 1;
    calls_.at(number)->times.ended = 0;
    return number;
  }

  /// Where to note the times of one that was entered; null if that is long ago.
  call_times* times_of_call(std::uint64_t number) noexcept { return times_of(calls_.at(number)); }
  call_times* times_of_message(std::uint64_t number) noexcept { return times_of(messages_.at(number)); }

  /// The call that operation `sequence` belongs to; null if it is not known, or not any more.
  const call_record* find(std::uint32_t sequence) const noexcept {
    for (std::uint64_t i = calls_.oldest(); i < calls_.count(); ++i) {
      if (calls_.at(i)->covers(sequence)) return calls_.at(i);
    }
    return nullptr;
  }

  /// Null if there was none.
  const call_record* last() const noexcept { return calls_.at(calls_.count() - 1); }

  /// The last message for which `wanted(message_record)` holds; null if there was none, or it is not kept any more.
  template <class Wanted>
  const message_record* last_message(Wanted wanted) const {
    for (std::uint64_t i = messages_.count(); i > messages_.oldest(); --i) {
      if (const message_record* const each = messages_.at(i - 1); wanted(*each)) return each;
    }
    return nullptr;
  }

  const last_of<call_record, retained_calls>& calls() const noexcept { return calls_; }
  const last_of<message_record, retained_messages>& messages() const noexcept { return messages_; }

 private:
  template <class Record>
  static call_times* times_of(Record* record) noexcept {
    return record != nullptr ? &record->times : nullptr;
  }

  std::uint32_t history_ = 0;
  last_of<call_record, retained_calls> calls_;
  last_of<message_record, retained_messages> messages_;
};

/// Which entry of a log an operation is, if there is one, so that its times are noted there.
class log_entry {
 public:
  enum class kind : std::uint8_t { none, call, message };

  log_entry() = default;
  log_entry(call_log& log, std::uint64_t number, kind what) noexcept : log_(&log), number_(number), what_(what) {}

  kind what() const noexcept { return what_; }
  std::uint64_t number() const noexcept { return number_; }

  /// Notes the end, and when it was, unless that is some microseconds after it began.
  void ends(bool after_long = true) const noexcept {
    if (what_ == kind::none) return;
    call_times* const times = what_ == kind::call ? log_->times_of_call(number_) : log_->times_of_message(number_);
    if (times != nullptr) times->ended = after_long ? platform::ticks() : call_times::soon;
  }

 private:
  call_log* log_ = nullptr;
  std::uint64_t number_ = 0;
  kind what_ = kind::none;
};

/// Inlined, so that the record is written where it stays: to copy what was just written in smaller parts would stall.
template <class Record>
HOCKET_ALWAYS_INLINE log_entry enter(call_log& log, const Record& record) {
  constexpr bool is_call = std::is_same_v<Record, call_record>;
  return {log, log.add(record), is_call ? log_entry::kind::call : log_entry::kind::message};
}

/// Of the last call, which was entered as a brief one and is not.
inline log_entry reopen(call_log& log) noexcept { return {log, log.reopen_last(), log_entry::kind::call}; }

}  // namespace detail
HOCKET_END_NAMESPACE
