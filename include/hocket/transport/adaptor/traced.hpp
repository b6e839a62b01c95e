// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An adaptor that records each step of each operation, and each message, with its time.
///
/// The output is in the Trace Event Format of Chrome, which Perfetto (ui.perfetto.dev) and chrome://tracing open: a
/// process for each rank, a line for each lane, arrows for messages, and a track for each counter, of which each rank has
/// one from the start: the bytes that it has sent and that are in flight.
#pragma once

#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/json_line.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/to_string.hpp>
#include <hocket/transport/adaptor/forwarding.hpp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace adaptor {

/// The events of one rank. Thread-safe: different threads may use its communicators.
class trace_log {
 public:
  /// `rank` is the rank in the world. Times are in microseconds on this rank's clock.
  explicit trace_log(int rank) : rank_(rank) {}

  int rank() const noexcept { return rank_; }
  /// Returns the time now, unless the rank is simulated.
  static double now() {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  /// When the log was made.
  double begin() const noexcept { return begin_; }

  /// Pauses or resumes recording.
  void pause(bool paused) noexcept { paused_.store(paused, std::memory_order_relaxed); }

  /// Adds an event that lasted from `begin` to `end` on line `line`; `details` is the content of a JSON object.
  void add(const std::string& name, std::uint64_t line, double begin, double end, std::string details) {
    append({name, "\"ph\":\"X\",\"dur\":" + number(std::max(end - begin, 0.0)), line, begin, std::move(details)});
  }
  /// Adds one end of an arrow. Both ends have the same `key`, and no other arrow has it.
  void add_arrow(bool starts, std::string_view key, std::uint64_t line, double time) {
    // Perfetto needs a number; JSON's are exact to 2^53.
    const std::uint64_t id = hocket::detail::checksum(std::as_bytes(std::span(key))) >> 12;
    const std::string how = starts ? "\"ph\":\"s\"" : "\"ph\":\"f\",\"bp\":\"e\"";
    append({"message", hocket::detail::concat({how, ",\"cat\":\"message\",\"id\":", id}), line, time, {}});
  }
  /// Adds a value to the track of a counter, which is made by its first value. A value that is not finite has no place in
  /// JSON, and is left out.
  void add_counter(std::string_view name, double time, double value) {
    if (!hocket::detail::is_finite(value)) return;
    append({std::string(name), "\"ph\":\"C\"", 0, time,
            hocket::detail::concat({"\"value\":", hocket::detail::json_number(value)})});
  }
  /// Records that the bytes in flight have grown or, if `change` is negative, shrunk.
  void change_bytes_in_flight(std::int64_t change, double time) {
    const std::int64_t now = in_flight_.fetch_add(change, std::memory_order_relaxed) + change;
    add_counter("bytes in flight", time, static_cast<double>(now));
  }
  void name_line(std::uint64_t line, const std::string& name) {
    const std::lock_guard guard(mutex_);
    lines_[line] = name;
  }

  /// Returns the events so far, as elements of a JSON array that end in a comma. Adds `offset` to all times.
  std::string events(double offset = 0) const {
    const std::lock_guard guard(mutex_);
    const std::string process = hocket::detail::concat({",\"pid\":", rank_});
    std::string text =
        hocket::detail::concat({"{\"ph\":\"M\",\"name\":\"process_name\"", process, ",\"args\":{\"name\":\"rank ",
                                rank_, "\"}},\n{\"ph\":\"M\",\"name\":\"process_sort_index\"", process,
                                ",\"args\":{\"sort_index\":", rank_, "}},\n"});
    for (const auto& [line, name] : lines_) {
      hocket::detail::append(text, {"{\"ph\":\"M\",\"name\":\"thread_name\"", process, ",\"tid\":", line,
                                    ",\"args\":{\"name\":\"", name, "\"}},\n"});
    }
    for (const event& each : events_) {
      hocket::detail::append(
          text, {"{\"name\":", hocket::detail::json_text(each.name), ",", each.how, process, ",\"tid\":", each.line,
                 ",\"ts\":", number(each.time + offset), ",\"args\":{", each.details, "}},\n"});
    }
    return text;
  }

 private:
  struct event {
    std::string name;
    std::string how;
    std::uint64_t line;
    double time;
    std::string details;
  };

  static std::string number(double microseconds) {
    char text[40];  // up to 10^30 µs; the locale does not matter, as JSON requires
    const auto written = std::to_chars(text, text + sizeof text, microseconds, std::chars_format::fixed, 3);
    return {text, written.ptr};
  }

  void append(event made) {
    if (paused_.load(std::memory_order_relaxed)) return;
    const std::lock_guard guard(mutex_);
    events_.push_back(std::move(made));
  }

  const int rank_;
  const double begin_ = now();
  std::atomic<std::int64_t> in_flight_{0};
  std::atomic<bool> paused_{false};
  mutable std::mutex mutex_;
  std::vector<event> events_;
  std::map<std::uint64_t, std::string> lines_;
};

/// What a trace begins and ends with, before and after the results of `trace_log::events` of all ranks.
inline constexpr std::string_view trace_begin = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n",
                                  trace_end =
                                      "{\"ph\":\"M\",\"name\":\"process_labels\",\"pid\":0,\"args\":"
                                      "{\"labels\":\"hocket\"}}\n]}\n";

/// Combines the results of `trace_log::events` of all ranks into a whole trace.
inline std::string trace_json(const std::vector<std::string>& events_of_ranks) {
  std::string text(trace_begin);
  for (const std::string& each : events_of_ranks) text += each;
  return text.append(trace_end);
}

template <class Endpoints>
class traced_endpoints : public forwarding_endpoints<Endpoints> {
  using base = forwarding_endpoints<Endpoints>;

 public:
  static constexpr bool observes_only = transport::observes_only<Endpoints>;

  /// A message with the bytes that are in flight until it is no longer needed.
  struct sending {
    typename base::sending message{};
    std::size_t bytes = 0;
  };

  traced_endpoints(std::unique_ptr<Endpoints> inner, const transport::open_parameters& how,
                   std::shared_ptr<trace_log> log)
      : base(std::move(inner)), context_(how.context), members_(how.members), log_(std::move(log)) {}

  // ── Steps ────────────────────────────────────────────────────────────────────────────────────────────────────────

  void enter(std::uint32_t sequence, unsigned lanes) {
    base::enter(sequence, lanes);
    const double time = now();
    for (unsigned lane = 0; lane < lanes; ++lane) {
      lanes_[{sequence, lane}] = {time, time};
      log_->name_line(line_of(sequence, lane), hocket::detail::concat({"communicator ", context_, ", slot ",
                                                                       sequence % transport::window, ", lane ", lane}));
    }
  }

  bool may_act(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    current_line_ = line_of(sequence, lane);
    return base::may_act(sequence, lane, what, bytes);
  }

  /// Records a step. It begins when the step before it has ended, so its wait is part of it.
  void on_step(std::uint32_t sequence, unsigned lane, const plan::action& what, std::size_t bytes) {
    lane_times& times = lanes_[{sequence, lane}];
    const double end = now();
    log_->add(plan::to_string(what), line_of(sequence, lane), times.last, end,
              hocket::detail::concat(
                  {"\"operation\":", sequence, ",\"lane\":", lane, ",\"step\":", times.steps++, ",\"bytes\":", bytes}));
    times.last = end;
  }

  void leave(std::uint32_t sequence) {
    const auto first = lanes_.lower_bound({sequence, 0});
    auto last = first;
    for (; last != lanes_.end() && last->first.first == sequence; ++last) {
      const auto& [key, times] = *last;
      log_->add(hocket::detail::concat({"operation ", sequence}), line_of(sequence, key.second), times.begin,
                times.last, "");
    }
    lanes_.erase(first, last);
    std::erase_if(numbers_, [&](const auto& each) {
      const auto& [sent, number, channel, peer] = each.first;
      return number == sequence && !transport::message_id{number, channel}.point_to_point();  // there `number` is a tag
    });
    base::leave(sequence);
  }

  // ── Messages ─────────────────────────────────────────────────────────────────────────────────────────────────────

  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes,
                failure& fail) {
    const double begin = now();
    if (!base::try_send(state.message, peer, id, data, bytes, fail)) return false;
    note_message(true, peer, id, bytes, begin);
    state.bytes = bytes;
    if (bytes > 0) log_->change_bytes_in_flight(static_cast<std::int64_t>(bytes), begin);
    return true;
  }

  bool drained(sending& state) {
    if (!base::drained(state.message)) return false;
    const std::size_t bytes = std::exchange(state.bytes, 0);
    if (bytes > 0) log_->change_bytes_in_flight(-static_cast<std::int64_t>(bytes), now());
    return true;
  }

  const void* try_receive(typename base::receiving& state, int peer, transport::message_id id, void* buffer,
                          std::size_t bytes, failure& fail) {
    const double begin = now();
    const void* const message = base::try_receive(state, peer, id, buffer, bytes, fail);
    if (message != nullptr) note_message(false, peer, id, bytes, begin);
    return message;
  }

 private:
  struct lane_times {
    double begin = 0;
    double last = 0;
    unsigned steps = 0;
  };

  /// Returns the time in microseconds.
  double now() {
    if constexpr (base::virtual_time) {
      return this->inner().now() * 1e6;
    } else {
      return trace_log::now();
    }
  }

  std::uint64_t line_of(std::uint32_t sequence, unsigned lane) const noexcept {
    return (std::uint64_t{context_} * transport::window + sequence % transport::window) * 256 + lane + 1;
  }
  /// Returns the line of messages that belong to no plan.
  std::uint64_t line_of_messages() const noexcept { return std::uint64_t{context_} * transport::window * 256; }

  void note_message(bool sent, int peer, transport::message_id id, std::size_t bytes, double begin) {
    const std::uint32_t number = numbers_[{sent, id.sequence, id.channel, peer}]++;
    std::uint64_t line = current_line_;
    if (id.point_to_point()) {
      line = line_of_messages();
      log_->name_line(line, hocket::detail::concat({"communicator ", context_, ", send and recv"}));
      log_->add(hocket::detail::concat({sent ? "send to " : "receive from ", peer}), line, begin, now(),
                hocket::detail::concat({"\"tag\":", id.sequence, ",\"bytes\":", bytes}));
    }
    const int own = (*members_)[static_cast<std::size_t>(this->rank())];
    const int other = (*members_)[static_cast<std::size_t>(peer)];
    std::string arrow = std::to_string(context_);
    for (const std::uint64_t part : {std::uint64_t{id.sequence}, std::uint64_t{id.channel}, std::uint64_t{number}}) {
      hocket::detail::append(arrow, {'.', part});
    }
    hocket::detail::append(arrow, {'.', sent ? own : other, '.', sent ? other : own});
    log_->add_arrow(sent, arrow, line, sent ? begin : now());
  }

  const std::uint32_t context_;
  const std::shared_ptr<const std::vector<int>> members_;
  const std::shared_ptr<trace_log> log_;
  std::map<std::pair<std::uint32_t, unsigned>, lane_times> lanes_;  ///< by operation and lane
  std::map<std::tuple<bool, std::uint32_t, std::uint32_t, int>, std::uint32_t>
      numbers_;  ///< numbers of the next messages
  std::uint64_t current_line_ = 0;
};

template <class Domain>
using traced = adapted_domain<Domain, traced_endpoints<typename Domain::endpoints_type>, trace_log>;

}  // namespace adaptor
HOCKET_END_NAMESPACE
