// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The last calls on a communicator, retained to report them to a peer whose call does not match, and for the flight
/// record after a failure.
///
/// Every call is entered, so an entry is a handful of stores: texts and times of day are computed only on request. A
/// short call reads the processor's counter once. A call is entered after it has sent what it can send: work that is
/// done while the peers' part is in transit costs nothing.
#pragma once

#include <hocket/communicator/communication_counts.hpp>
#include <hocket/communicator/signature.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// When a call began and ended, in ticks.
struct call_times {
  static constexpr std::uint64_t unmeasured_end = 1;  ///< ended some microseconds after it began

  std::uint64_t begun = 0;  ///< when the call began, or began to wait
  std::uint64_t ended = 0;  ///< 0: still under way

  static call_times from_now() noexcept { return {platform::ticks(), 0}; }
};

/// One call. All strings have static storage duration, except the plan's name: see `call_log::plan_name`.
struct call_record {
  std::uint32_t sequence = 0;    ///< of the call's first operation
  std::uint32_t operations = 0;  ///< number of operations of the call
  std::uint32_t signature = 0;
  std::uint32_t history = 0;  ///< `call_log::history()` before the call
  const char* operation = "";
  const char* types = "";  ///< as the compiler writes them: see `type_text`; empty for internal exchanges
  const char* plan = "";
  std::uint64_t elements = 0;  ///< per block; the longest block if they differ
  int root = 0;
  std::source_location site{};
  call_times times{};
#if HOCKET_ASSERTION_LEVEL >= 3
  std::uint64_t description = 0;  ///< like `signature`, in 64 bits: see collective/host/comparison.hpp
#endif

  bool covers(std::uint32_t number) const noexcept { return number - sequence < operations; }
};

/// One message outside any plan, or a pair of messages, one in each direction.
struct message_record {
  const char* operation = "";
  int to = -1;    ///< -1: nothing is sent
  int from = -1;  ///< -1: nothing is received
  std::uint32_t tag = 0;
  std::uint64_t sent_bytes = 0;
  std::uint64_t received_bytes = 0;  ///< size of the receive buffer
  std::uint32_t after = 0;           ///< the last operation that was numbered before the message
  std::source_location site{};
  call_times times{};
};

/// Extracts "float, std::plus<void>" from the `__PRETTY_FUNCTION__` of a template whose parameter pack is named Types.
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

/// Returns a text like "all_reduce of 15 elements of (float, std::plus<void>) by ring, called at train.cpp:30".
inline std::string describe(const call_record& call) {
  const std::string_view name = call.operation;
  const std::string site = concat({", called at ", call.site.file_name(), ':', call.site.line()});
  if (*call.types == '\0') return concat({name, site});  // the gathered data is internal
  if (name == "barrier") return concat({"barrier by ", call.plan, site});
  const bool differ = name.ends_with("_v");
  std::string text = concat({name, " of "});
  if (name != "all_to_all_v") append(text, {differ ? "up to " : "", call.elements, ' '});
  append(text, {"elements ", differ ? "for each rank " : "", "of (", type_text(call.types), ") by ", call.plan});
  if (name == "broadcast" || name == "scatter" || name == "scatter_v") append(text, {" from root ", call.root});
  if (name == "reduce" || name == "gather" || name == "gather_v") append(text, {" to root ", call.root});
  return text + site;
}

/// Returns a text like "send of 20 bytes, called at train.cpp:30".
inline std::string describe(const message_record& message) {
  const std::uint64_t bytes = message.to >= 0 ? message.sent_bytes : message.received_bytes;
  return concat(
      {message.operation, " of ", bytes, " bytes, called at ", message.site.file_name(), ':', message.site.line()});
}

/// The last `Kept` records of a sequence. Grows only as needed, because a simulation has thousands of ranks.
template <class Record, std::size_t Kept>
class last_of {
 public:
  /// Returns the next record for the caller to fill in. It may still hold an old one.
  Record& next() {
    const std::size_t at = count_ % Kept;
    if (count_ < Kept && at == records_.size()) records_.emplace_back();
    ++count_;
    return records_[at];
  }
  /// Number of records so far, including those that are no longer retained.
  std::uint64_t count() const noexcept { return count_; }
  /// Returns the record that `number` others precede; null if it is no longer retained.
  Record* at(std::uint64_t number) noexcept {
    return number < count_ && count_ - number <= Kept ? &records_[number % Kept] : nullptr;
  }
  const Record* at(std::uint64_t number) const noexcept { return const_cast<last_of*>(this)->at(number); }
  /// Number of the oldest record that is still retained.
  std::uint64_t oldest() const noexcept { return count_ > Kept ? count_ - Kept : 0; }

 private:
  std::vector<Record> records_;
  std::uint64_t count_ = 0;
};

class call_log {
 public:
  static constexpr std::size_t retained_calls = 32;
  static constexpr std::size_t retained_messages = 16;
  static constexpr std::size_t most_plan_names = 2 * retained_calls;
  /// Whether calls are retained, which comparing them needs; messages outside any plan always are.
  static constexpr bool retains_calls = HOCKET_MISMATCH_DETECTION != 0;

  /// Hash of all calls so far, retained or not; equal on all ranks as long as their calls are equal.
  std::uint32_t history() const noexcept { return history_; }
  /// Adds a call to the history. Returns the running signature that the call's flags and messages carry.
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

  /// Enters, as already complete, a call that will most likely complete within microseconds; if it does not, call
  /// `reopen_last`. On the fast path of the shortest calls.
  HOCKET_ALWAYS_INLINE void add_brief(const call_record& call) {
    if constexpr (!retains_calls) return;
    call_record& entered = calls_.next();
    entered = call;
    entered.times = {platform::ticks(), call_times::unmeasured_end};
  }
  /// Returns when the last call that was entered began; now, if calls are not retained.
  std::uint64_t begin_of_last() const noexcept {
    return retains_calls ? calls_.at(calls_.count() - 1)->times.begun : platform::ticks();
  }
  /// Marks the last call that was entered as not complete. Returns its number.
  std::uint64_t reopen_last() noexcept {
    if constexpr (!retains_calls) return 0;
    const std::uint64_t number = calls_.count() - 1;
    calls_.at(number)->times.ended = 0;
    return number;
  }

  /// Returns where the times of call `number` are stored; null if the entry is no longer retained.
  call_times* times_of_call(std::uint64_t number) noexcept { return times_of(calls_.at(number)); }
  call_times* times_of_message(std::uint64_t number) noexcept { return times_of(messages_.at(number)); }

  /// Returns the call that operation `sequence` belongs to; null if it is unknown or no longer retained.
  const call_record* find(std::uint32_t sequence) const noexcept {
    for (std::uint64_t i = calls_.oldest(); i < calls_.count(); ++i) {
      if (calls_.at(i)->covers(sequence)) return calls_.at(i);
    }
    return nullptr;
  }

  /// The last call; null if there was none.
  const call_record* last() const noexcept { return calls_.at(calls_.count() - 1); }

  /// Returns the last retained message for which `wanted(message_record)` holds; null if there is none.
  template <class Wanted>
  const message_record* last_message(Wanted wanted) const {
    for (std::uint64_t i = messages_.count(); i > messages_.oldest(); --i) {
      if (const message_record* const each = messages_.at(i - 1); wanted(*each)) return each;
    }
    return nullptr;
  }

  /// Returns a copy of the name of a plan, for a call that is entered next. The copy is valid while a retained call has
  /// it, because the plan may be destroyed before its calls are reported. At most `most_plan_names` copies are kept.
  const char* plan_name(std::string_view name) {
    for (const auto& each : plan_names_) {
      if (*each == name) return each->c_str();
    }
    if (plan_names_.size() == most_plan_names) {
      std::erase_if(plan_names_, [&](const auto& each) { return !retains_plan_name(each->c_str()); });
    }
    return plan_names_.emplace_back(std::make_unique<const std::string>(name))->c_str();
  }
  std::size_t plan_name_count() const noexcept { return plan_names_.size(); }

  const last_of<call_record, retained_calls>& calls() const noexcept { return calls_; }
  const last_of<message_record, retained_messages>& messages() const noexcept { return messages_; }

 private:
  template <class Record>
  static call_times* times_of(Record* record) noexcept {
    return record != nullptr ? &record->times : nullptr;
  }

  bool retains_plan_name(const char* name) const noexcept {
    for (std::uint64_t i = calls_.oldest(); i < calls_.count(); ++i) {
      if (calls_.at(i)->plan == name) return true;
    }
    return false;
  }

  std::vector<std::unique_ptr<const std::string>> plan_names_;
  std::uint32_t history_ = 0;
  last_of<call_record, retained_calls> calls_;
  last_of<message_record, retained_messages> messages_;
};

/// Identifies the log entry of an operation, if it has one, so that the operation can record its times there, and in the
/// communicator's counts.
class log_entry {
 public:
  enum class kind : std::uint8_t { none, call, message };

  log_entry() = default;
  log_entry(call_log& log, std::uint64_t number, kind what, const timed_call& timed) noexcept
      : log_(&log), number_(number), what_(what), timed_(timed) {}

  kind what() const noexcept { return what_; }
  std::uint64_t number() const noexcept { return number_; }

  /// Records that the call has ended: now, or, if not `after_long`, some microseconds after it began.
  void ends(bool after_long = true) const noexcept {
    const std::uint64_t now = after_long ? platform::ticks() : call_times::unmeasured_end;
    if (after_long) timed_.ends(now);
    if (what_ == kind::none) return;
    call_times* const times = what_ == kind::call ? log_->times_of_call(number_) : log_->times_of_message(number_);
    if (times != nullptr) times->ended = now;
  }

 private:
  call_log* log_ = nullptr;
  std::uint64_t number_ = 0;
  kind what_ = kind::none;
  timed_call timed_;
};

/// The kind of entry of a call: none if calls are not retained, but the call is timed.
inline constexpr log_entry::kind kind_of_calls =
    call_log::retains_calls ? log_entry::kind::call : log_entry::kind::none;

/// Inlined so that the record is written in place: copying it in smaller parts right after the stores would stall.
template <class Record>
HOCKET_ALWAYS_INLINE log_entry enter(call_log& log, const Record& record, const timed_call& timed) {
  constexpr bool is_call = std::is_same_v<Record, call_record>;
  return {log, log.add(record), is_call ? kind_of_calls : log_entry::kind::message, timed};
}

}  // namespace detail
HOCKET_END_NAMESPACE
