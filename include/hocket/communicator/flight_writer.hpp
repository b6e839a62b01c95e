// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Text of a flight record: one rank's last calls on one communicator, for diagnosis after a job has failed.
///
/// The format is lines of JSON, so that a person can read them and a program needs only a parser; `hocket-flight`
/// explains the records of all ranks together. The first line identifies the rank, the second the failure, if any; then
/// follow calls and messages, oldest first, and a last line that marks the record as complete. Each line ends with a
/// checksum of its other fields, so that damaged lines are not taken for others. Times are nanoseconds
/// since 1970 by this host's clock. Unknown values are left out.
#pragma once

#include <hocket/communicator/call_log.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/platform/ticks.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Incremented when a field changes its meaning.
inline constexpr int flight_record_version = 2;

/// Identifies the rank and the communicator of a record.
struct flight_identity {
  int rank = 0;
  std::shared_ptr<const std::vector<int>> members;  ///< their ranks in the domain
  int world_rank = 0;                               ///< this rank's number on the first communicator
  int world_ranks = 0;
  std::uint32_t communicator = 0;  ///< number of the communicator, equal on all its ranks
  const char* transport = "";
  platform::tick_mark made = platform::tick_mark::now();
};

/// Position of an active call.
struct active_call {
  std::uint32_t sequence = 0;  ///< of its operation; 0: a message
  log_entry entry{};           ///< of no kind: the blocking call
  int lane = -1;
  int step = -1;
  int awaited = -1;
};

/// A failure, when it was detected, and on which rank first.
struct recorded_failure {
  const failure* cause = nullptr;
  std::uint64_t when = 0;   ///< in ticks
  int first_on = -1;        ///< the rank that reported it to the others
  bool on_leaving = false;  ///< it reached no call on this rank, because none was made afterwards
};

class flight_writer {
 public:
  flight_writer(const flight_identity& who, const call_log& log, const std::vector<active_call>& active)
      : who_(who), log_(log), active_(active), calendar_(who.made) {}

  HOCKET_COLD std::string write(const recorded_failure& failed) {
    head();
    if (failed.cause != nullptr) failure_line(failed);
    const auto& calls = log_.calls();
    for (std::uint64_t i = calls.oldest(); i < calls.count(); ++i) call_line(*calls.at(i));
    const auto& messages = log_.messages();
    for (std::uint64_t i = messages.oldest(); i < messages.count(); ++i) message_line(i, *messages.at(i));
    add(json_line().number("end_of_record", 1));
    return std::move(text_);
  }

 private:
  void add(json_line& line) { text_ += std::move(line).finish(); }
  void add(json_line&& line) { add(line); }

  HOCKET_COLD void head() {
    json_line line;
    line.number("hocket_flight_record", flight_record_version)
        .text("hocket", std::to_string(HOCKET_VERSION_MAJOR) + '.' + std::to_string(HOCKET_VERSION_MINOR) + '.' +
                            std::to_string(HOCKET_VERSION_PATCH))
        .number("communicator", who_.communicator)
        .number("rank", who_.rank)
        .number("ranks", static_cast<std::int64_t>(who_.members->size()))
        .number("world_rank", who_.world_rank)
        .number("world_ranks", who_.world_ranks)
        .text("transport", who_.transport)
        .text("host", platform::host_name())
        .number("pid", platform::process_number())
        .number("made", calendar_.at(who_.made.ticks))
        .number("written", calendar_.now())
        .number("last_sequence", last_sequence())
        .numbers("members", *who_.members);
    add(line);
  }

  std::int64_t last_sequence() const {
    const auto& calls = log_.calls();
    if (calls.count() == 0) return 0;
    const call_record& last = *calls.at(calls.count() - 1);
    return last.sequence + last.operations - 1;
  }

  HOCKET_COLD void failure_line(const recorded_failure& failed) {
    const failure& cause = *failed.cause;
    const error_context& context = cause.context;
    json_line line;
    line.text("failure", cause.code.message()).number("code", cause.code.value()).number("first_on", failed.first_on);
    known(line, "culprit", context.peer);
    if (failed.on_leaving) line.number("on_leaving", 1);
    if (context.operation != nullptr) line.text("operation", context.operation);
    if (context.sequence != 0) line.number("sequence", static_cast<std::int64_t>(context.sequence));
    known(line, "lane", context.lane);
    known(line, "step", context.step);
    site(line, context.site);
    add(line.number("time", calendar_.at(failed.when)).text("message", cause.message()));
  }

  HOCKET_COLD void call_line(const call_record& call) {
    json_line line;
    line.number("call", call.sequence);
    if (call.operations > 1) line.number("operations", call.operations);
    line.text("operation", call.operation)
        .number("elements", static_cast<std::int64_t>(call.elements))
        .text("types", type_text(call.types))
        .text("plan", call.plan)
        .number("root", call.root)
        .number("signature", call.signature);
    site(line, call.site);
    times(line, call.times);
    if (call.times.ended == 0) {
      for (const active_call& each : active_) {
        if (each.sequence != 0 && call.covers(each.sequence)) return add(position(line, each));
      }
    }
    add(line);
  }

  HOCKET_COLD void message_line(std::uint64_t number, const message_record& message) {
    json_line line;
    line.number("message", static_cast<std::int64_t>(number + 1)).text("operation", message.operation);
    if (message.to >= 0) line.number("to", message.to).number("bytes", static_cast<std::int64_t>(message.sent_bytes));
    if (message.from >= 0) {
      line.number("from", message.from).number("room", static_cast<std::int64_t>(message.received_bytes));
    }
    line.number("tag", message.tag).number("after", message.after);
    site(line, message.site);
    times(line, message.times);
    if (message.times.ended == 0) {
      if (const active_call* const here = active_message(number)) position(line, *here);
    }
    add(line);
  }

  /// A blocking message call has no number here and is the last message.
  const active_call* active_message(std::uint64_t number) const {
    const active_call* blocking = nullptr;
    for (const active_call& each : active_) {
      if (each.entry.what() == log_entry::kind::message && each.entry.number() == number) return &each;
      if (each.entry.what() == log_entry::kind::none && each.sequence == 0) blocking = &each;
    }
    return number + 1 == log_.messages().count() ? blocking : nullptr;
  }

  static json_line& position(json_line& line, const active_call& at) {
    known(line, "lane", at.lane);
    known(line, "step", at.step);
    return known(line, "awaits", at.awaited);
  }

  static json_line& known(json_line& line, const char* name, int value) {
    return value >= 0 ? line.number(name, value) : line;
  }

  static void site(json_line& line, const std::source_location& where) {
    if (where.line() != 0) line.text("file", where.file_name()).number("line", where.line());
  }

  void times(json_line& line, const call_times& when) const {
    if (when.begun != 0) line.number("begin", calendar_.at(when.begun));
    if (when.ended > call_times::unmeasured_end) line.number("end", calendar_.at(when.ended));
    line.number("over", when.ended != 0 ? 1 : 0);
  }

  const flight_identity& who_;
  const call_log& log_;
  const std::vector<active_call>& active_;
  const platform::tick_calendar calendar_;
  std::string text_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
