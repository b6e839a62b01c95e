// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Writes this rank's flight record to a file when its communicator has failed, if the user has named a directory.
///
/// All ranks learn of a failure, and each writes what it knows. A killed rank writes nothing, which is itself evidence.
/// A file that can't be written never hides the error itself.
#pragma once

#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/flight_writer.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/directory.hpp>
#include <hocket/core/platform/ticks.hpp>
#include <hocket/core/text.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class flight_recorder {
 public:
  explicit flight_recorder(flight_identity who) : who_(std::move(who)) {}

  /// Where records are written; empty: nowhere.
  const std::string& directory() const noexcept { return directory_; }
  void set_directory(std::string path) { directory_ = std::move(path); }

  /// Takes over the directory and the rank in the world from `parent`, from which this communicator was made.
  void inherit(const flight_recorder& parent) {
    directory_ = parent.directory_;
    who_.world_rank = parent.who_.world_rank;
    who_.world_ranks = parent.who_.world_ranks;
  }

  /// Records that the communicator has failed, first on rank `first_on`.
  void note_failure(int first_on) noexcept {
    failed_at_ = platform::ticks();
    first_on_ = first_on;
  }

  /// True if a failure was recorded and is not written yet.
  bool due() const noexcept { return failed_at_ != 0 && !recorded_ && !directory_.empty(); }

  /// Writes the file. Ignores errors.
  HOCKET_COLD void record(const call_log& log, const failure& cause, const std::vector<active_call>& active) noexcept {
    recorded_ = true;
#if HOCKET_HAS_EXCEPTIONS
    try {
      write(text(log, &cause, active));
    } catch (...) {  // the failure that the caller reports matters more
    }
#else
    write(text(log, &cause, active));
#endif
  }
  /// Like `record`, for a communicator that is destroyed before any call has failed on this rank.
  HOCKET_COLD void record_on_leaving(const call_log& log, const failure& cause) noexcept {
    leaving_ = true;
    record(log, cause, {});
  }

  HOCKET_COLD std::string text(const call_log& log, const failure* cause,
                               const std::vector<active_call>& active) const {
    return flight_writer(who_, log, active).write({cause, failed_at_, first_on_, leaving_});
  }

 private:
  HOCKET_COLD void write(const std::string& text) const {
    platform::make_directory(directory_);
    const std::string name = concat({"hocket-flight-communicator", who_.communicator, "-rank", who_.world_rank, '-',
                                     platform::tick_calendar(who_.made).at(who_.made.ticks), ".jsonl"});
    static_cast<void>(platform::write_file(directory_, name, std::as_bytes(std::span(text))));
  }

  flight_identity who_;
  std::string directory_;
  std::uint64_t failed_at_ = 0;  ///< in ticks; 0: no failure
  int first_on_ = -1;
  bool recorded_ = false;
  bool leaving_ = false;
};

}  // namespace detail
HOCKET_END_NAMESPACE
