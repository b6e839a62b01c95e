// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A line for people that shows how far a job is, how fast, and how long it will take:
///
///     step 120/800  15%  2.31 steps/s  4m 54s left  loss 2.41
///
/// On a terminal, the line is replaced ten times a second; otherwise, as in the log of a batch system, a new line is
/// written every ten seconds.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/terminal.hpp>
#include <hocket/core/text.hpp>
#include <hocket/core/utf8.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

/// Returns a positive number with three digits, if it has no more before its point.
inline std::string three_digits(double value) {
  char digits[64];
  const int decimals = value < 10 ? 2 : value < 100 ? 1 : 0;
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals);
  return error == std::errc() ? std::string(digits, end) : "many";
}

/// Returns a duration in its two greatest units: "4m 05s".
inline std::string duration_text(double seconds) {
  constexpr double most = 1e9;  // 30 years
  const auto all = static_cast<std::uint64_t>(seconds < most ? seconds : most);
  struct {
    std::uint64_t length;
    const char* name;
  } constexpr units[] = {{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}};
  std::size_t first = 0;
  while (first < 3 && all < units[first].length) ++first;
  std::string result = hocket::detail::concat({all / units[first].length, units[first].name});
  if (first == 3) return result;
  const std::uint64_t rest = all % units[first].length / units[first + 1].length;
  hocket::detail::append(result, {rest < 10 ? " 0" : " ", rest, units[first + 1].name});
  return result;
}

/// The speed of the last half minute, or so.
class recent_rate {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// States that `step` steps are done at `now`. A step before the last one, as after a rollback, begins again.
  void add(std::int64_t step, time_point now) {
    if (!samples_.empty() && step < last_step_) samples_.clear();
    if (samples_.empty() || now - samples_.back().at >= std::chrono::seconds(2)) samples_.push_back({step, now});
    if (samples_.size() > 16) samples_.pop_front();
    last_step_ = step;
    last_ = now;
  }

  /// Steps per second; 0 if it is not known yet.
  double value() const noexcept {
    if (samples_.empty() || last_step_ <= samples_.front().step) return 0;
    const double seconds = std::chrono::duration<double>(last_ - samples_.front().at).count();
    return seconds > 0 ? static_cast<double>(last_step_ - samples_.front().step) / seconds : 0;
  }

 private:
  struct sample {
    std::int64_t step;
    time_point at;
  };
  std::deque<sample> samples_;
  std::int64_t last_step_ = 0;
  time_point last_{};
};

/// Returns whether a terminal does not show `c`, but does something, such as to begin a line.
inline bool is_control_character(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

/// Returns the line without its end. `steps` is 0 if it is not known.
inline std::string progress_line(std::int64_t step, std::int64_t steps, double rate, std::string_view text) {
  std::string line = hocket::detail::concat({"step ", step});
  if (steps > 0) {
    const auto percent = static_cast<std::int64_t>(100 * static_cast<double>(step) / static_cast<double>(steps));
    hocket::detail::append(line, {"/", steps, "  ", percent, "%"});
  }
  if (rate >= 0.1) hocket::detail::append(line, {"  ", three_digits(rate), " steps/s"});
  if (rate > 0 && rate < 0.1) hocket::detail::append(line, {"  ", three_digits(1 / rate), " s/step"});
  if (rate > 0 && step < steps)
    hocket::detail::append(line, {"  ", duration_text(static_cast<double>(steps - step) / rate), " left"});
  if (!text.empty()) hocket::detail::append(line, {"  ", text});
  std::replace_if(line.begin(), line.end(), is_control_character, ' ');
  return line;
}

/// Returns the beginning of `line` that `columns` characters of one column fit.
inline std::string cut(std::string_view line, std::size_t columns) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < columns && end < line.size(); ++i) {
    const std::size_t length = hocket::detail::length_of_character(line.substr(end));
    end += length == 0 ? 1 : length;
  }
  return std::string(line.substr(0, end));
}

}  // namespace detail

struct console_options {
  std::FILE* to = stderr;
  std::optional<bool> is_terminal{};                                ///< empty: as `to` is
  std::chrono::nanoseconds between = std::chrono::milliseconds(0);  ///< lines; 0: 100 ms on a terminal, and else 10 s
};

/// Shows the progress of `steps` steps. One rank of a job should have it.
///
/// **Threads.** Any. **Errors.** None: a stream that can't be written is no reason to end a job.
class console {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  /// `steps` is 0 if the number is not known.
  explicit console(std::int64_t steps, const console_options& options = {})
      : steps_(steps), to_(options.to), is_terminal_(options.is_terminal.value_or(platform::is_terminal(options.to))),
        between_(options.between) {
    if (between_ == std::chrono::nanoseconds::zero())
      between_ = is_terminal_ ? std::chrono::nanoseconds(std::chrono::milliseconds(100)) : std::chrono::seconds(10);
  }
  console(const console&) = delete;
  console& operator=(const console&) = delete;
  ~console() { finish(); }

  /// States that `step` steps are done, and writes a line if one is due. `text` is appended to it; its control
  /// characters, such as line breaks, become spaces.
  void update(std::int64_t step, std::string_view text = {}) { update(step, text, std::chrono::steady_clock::now()); }
  /// The same at a time that the caller measured.
  void update(std::int64_t step, std::string_view text, time_point now) {
    const std::scoped_lock lock(mutex_);
    rate_.add(step, now);
    line_ = detail::progress_line(step, steps_, rate_.value(), text);
    is_written_ = false;
    if (written_at_ && now - *written_at_ < between_) return;
    written_at_ = now;
    write();
  }

  /// Writes the last line, unless it is written, and ends it. Later updates begin a new one.
  void finish() {
    const std::scoped_lock lock(mutex_);
    if (line_.empty()) return;
    if (!is_written_) write();
    if (is_terminal_) std::fputc('\n', to_);
    std::fflush(to_);
    line_.clear();
    written_at_.reset();
  }

 private:
  void write() {
    std::string text = line_ + '\n';
    if (is_terminal_) text = '\r' + detail::cut(line_, platform::terminal_columns(to_) - 1) + "\x1b[K";
    std::fwrite(text.data(), 1, text.size(), to_);
    std::fflush(to_);
    is_written_ = true;
  }

  std::mutex mutex_;
  std::int64_t steps_;
  std::FILE* to_;
  bool is_terminal_;
  std::chrono::nanoseconds between_;
  detail::recent_rate rate_;
  std::string line_;
  bool is_written_ = false;
  std::optional<time_point> written_at_;
};

}  // namespace observe
HOCKET_END_NAMESPACE
