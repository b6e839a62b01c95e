// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads the flight records that the ranks of a job have left. A job that was killed may leave damaged files: the
/// reader reports what it can't read, with file and line, and uses the rest.
#pragma once

#include <hocket/communicator/flight_writer.hpp>
#include <hocket/core/json_line.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace flight {

/// An error that the user can fix.
struct usage_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using nanoseconds = std::int64_t;  ///< since 1970

struct site {
  std::string file;
  std::int64_t line = 0;
};

/// A collective.
struct call {
  std::int64_t sequence = 0;
  std::int64_t operations = 1;
  std::string operation;
  std::int64_t elements = 0;
  std::string types;
  std::string plan;
  std::int64_t root = 0;
  std::int64_t signature = 0;
  site where;
  std::optional<nanoseconds> begin;
  std::optional<nanoseconds> end;
  bool over = false;
  int step = -1;
  int awaits = -1;

  bool covers(std::int64_t number) const { return number >= sequence && number < sequence + operations; }
};

struct message {
  std::string operation;
  int to = -1;
  int from = -1;
  std::int64_t bytes = 0;
  std::int64_t room = 0;
  std::int64_t tag = 0;
  std::int64_t after = 0;  ///< the collective before it
  site where;
  std::optional<nanoseconds> begin;
  std::optional<nanoseconds> end;
  bool over = false;
  int awaits = -1;
};

struct failure {
  std::string name;
  int code = 0;
  int first_on = -1;
  int culprit = -1;
  bool on_leaving = false;
  std::string operation;
  std::int64_t sequence = 0;
  site where;
  nanoseconds time = 0;
  std::string text;
};

/// The record that one rank has left of one communicator.
struct record {
  std::string path;
  std::int64_t communicator = 0;
  int rank = 0;
  int ranks = 1;
  int world_rank = 0;
  int world_ranks = 1;
  std::vector<int> members;
  std::string transport;
  std::string host;
  std::int64_t pid = 0;
  nanoseconds made = 0;
  nanoseconds written = 0;
  std::int64_t last_sequence = 0;
  std::optional<failure> failed;
  std::vector<call> calls;
  std::vector<message> messages;
};

/// All records that were found, and one sentence for each problem in them.
struct archive {
  std::vector<record> records;
  std::vector<std::string> problems;
};

namespace detail {

using nlohmann::json;

/// Returns an integer from -1 to `most`, so that sums of such numbers do not overflow; throws otherwise.
inline std::int64_t whole_number(const json& value, const char* name, std::int64_t most) {
  if (!value.is_number_integer()) throw usage_error('"' + std::string(name) + "\" is not an integer");
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (huge || value.get<std::int64_t>() < -1) throw usage_error('"' + std::string(name) + "\" is out of range");
  return value.get<std::int64_t>();
}

/// Assigns `line[name]` to `value` if present; throws if it has another type.
template <class T>
void take(const json& line, const char* name, T& value) {
  const auto found = line.find(name);
  if (found == line.end()) return;
  if constexpr (std::is_integral_v<T>) {
    constexpr std::int64_t most = 4'000'000'000'000'000'000;
    value = static_cast<T>(whole_number(*found, name, std::min<std::int64_t>(most, std::numeric_limits<T>::max())));
  } else {
    found->get_to(value);
  }
}
inline void take(const json& line, const char* name, std::optional<nanoseconds>& value) {
  nanoseconds time = -1;
  take(line, name, time);
  if (time >= 0) value = time;
}
inline void take(const json& line, const char* name, std::vector<int>& value) {
  const auto found = line.find(name);
  if (found == line.end() || !found->is_array()) return;
  for (const json& each : *found) {
    value.push_back(static_cast<int>(whole_number(each, name, std::numeric_limits<int>::max())));
  }
}
inline void take(const json& line, const char* name, bool& value) {
  int number = 0;
  take(line, name, number);
  value = number != 0;
}

/// Reads the fields that calls, messages and failures share.
template <class Entry>
void take_site(const json& line, Entry& entry) {
  take(line, "operation", entry.operation);
  take(line, "file", entry.where.file);
  take(line, "line", entry.where.line);
}

template <class Entry>
void take_times(const json& line, Entry& entry) {
  take(line, "begin", entry.begin);
  take(line, "end", entry.end);
  take(line, "over", entry.over);
  take(line, "awaits", entry.awaits);
}

inline call call_from(const json& line) {
  call result;
  take(line, "call", result.sequence);
  take(line, "operations", result.operations);
  take(line, "elements", result.elements);
  take(line, "types", result.types);
  take(line, "plan", result.plan);
  take(line, "root", result.root);
  take(line, "signature", result.signature);
  take(line, "step", result.step);
  take_site(line, result);
  take_times(line, result);
  return result;
}

inline message message_from(const json& line) {
  message result;
  take(line, "to", result.to);
  take(line, "from", result.from);
  take(line, "bytes", result.bytes);
  take(line, "room", result.room);
  take(line, "tag", result.tag);
  take(line, "after", result.after);
  take_site(line, result);
  take_times(line, result);
  return result;
}

inline failure failure_from(const json& line) {
  failure result;
  take(line, "failure", result.name);
  take(line, "code", result.code);
  take(line, "first_on", result.first_on);
  take(line, "culprit", result.culprit);
  take(line, "on_leaving", result.on_leaving);
  take(line, "sequence", result.sequence);
  take(line, "time", result.time);
  take(line, "message", result.text);
  take_site(line, result);
  return result;
}

/// Throws `usage_error` unless `line` begins a record that this tool can read.
inline void require_version(const json& line) {
  constexpr int own = hocket::detail::flight_record_version;
  int version = 0;
  take(line, "hocket_flight_record", version);
  if (version == own) return;
  if (version == 0) throw usage_error("this is not a flight record of hocket");
  throw usage_error("a flight record of version " + std::to_string(version) + "; this tool reads version " +
                    std::to_string(own) + ": use the hocket-flight of the program's hocket version");
}

/// Parses the first line of a record; throws `usage_error` if this tool can't read the record.
inline record head_from(const json& line) {
  record result;
  take(line, "communicator", result.communicator);
  take(line, "rank", result.rank);
  take(line, "ranks", result.ranks);
  take(line, "world_rank", result.world_rank);
  take(line, "world_ranks", result.world_ranks);
  take(line, "members", result.members);
  take(line, "transport", result.transport);
  take(line, "host", result.host);
  take(line, "pid", result.pid);
  take(line, "made", result.made);
  take(line, "written", result.written);
  take(line, "last_sequence", result.last_sequence);
  const bool fits = result.ranks > 0 && result.rank >= 0 && result.rank < result.ranks &&
                    result.members.size() == static_cast<std::size_t>(result.ranks);
  if (!fits) throw usage_error("rank, ranks and members contradict each other");
  return result;
}

/// Reads one file, line by line.
class reader {
 public:
  reader(std::string path, archive& to) : path_(std::move(path)), to_(to) {}

  void read() {
    std::ifstream file(path_);
    file ? read(file) : complain("the file can't be opened");
  }

  void read(std::istream& file) {
    for (std::string line; std::getline(file, line);) {
      ++number_;
      if (!read_line(line)) break;
      offset_ += line.size() + 1;
      if (file.eof()) whole_ = false;  // the end of the line is missing
    }
    if (found_ && !whole_) complain("the file ends here and is incomplete; the lines before are used", true);
    if (number_ == 0) complain("the file is empty");
    if (found_) to_.records.push_back(std::move(*found_));
  }

 private:
  /// Returns false if the file can't be used because its first line is no valid head.
  bool read_line(const std::string& text) {
    try {
      const json line = json::parse(text);
      if (!line.is_object()) throw usage_error("not an object");
      if (!found_) require_version(line);
      if (!hocket::detail::has_valid_checksum(text)) {
        throw usage_error("this line is damaged: its checksum is missing or wrong (bytes " + std::to_string(offset_) +
                          " to " + std::to_string(offset_ + text.size()) + "); it is not used");
      }
      if (!found_) {
        found_ = head_from(line);
        found_->path = path_;
      } else {
        add(line);
      }
      return true;
    } catch (const usage_error& problem) {
      complain(problem.what(), true);
    } catch (const json::exception& problem) {
      complain("this line can't be read: " + std::string(problem.what()), true);
    }
    return found_.has_value();
  }

  void add(const json& line) {
    if (line.contains("failure")) found_->failed = failure_from(line);
    if (line.contains("call")) found_->calls.push_back(call_from(line));
    if (line.contains("message") && !line.contains("failure")) found_->messages.push_back(message_from(line));
    if (line.contains("end_of_record")) whole_ = true;
  }

  void complain(const std::string& what, bool with_line = false) {
    to_.problems.push_back(path_ + (with_line ? ':' + std::to_string(number_) : "") + ": " + what);
  }

  const std::string path_;
  archive& to_;
  int number_ = 0;
  std::size_t offset_ = 0;  ///< of the line in the file
  bool whole_ = false;
  std::optional<record> found_;
};

inline bool is_record_name(const std::string& name) {
  return name.rfind("hocket-flight-", 0) == 0 && name.size() > 6 && name.substr(name.size() - 6) == ".jsonl";
}

}  // namespace detail

/// Returns the records in `places`, directories or files. Throws `usage_error` if a place or all records are missing.
inline archive read(const std::vector<std::string>& places) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& place : places) {
    std::error_code problem;
    const fs::file_status status = fs::status(place, problem);
    if (!fs::exists(status)) throw usage_error("there is no file or directory '" + place + "'");
    if (fs::is_regular_file(status)) {
      files.push_back(place);
      continue;
    }
    if (!fs::is_directory(status)) throw usage_error("'" + place + "' is neither a file nor a directory");
    fs::directory_iterator entries(place, problem);
    if (problem) throw usage_error("'" + place + "' can't be read: " + problem.message());
    for (const fs::directory_entry& each : entries) {
      const bool fits = detail::is_record_name(each.path().filename().string()) && each.is_regular_file(problem);
      if (fits) files.push_back(each.path().string());
    }
  }
  std::sort(files.begin(), files.end());
  archive result;
  for (const std::string& file : files) detail::reader(file, result).read();
  if (result.records.empty() && result.problems.empty()) {
    throw usage_error(
        "no flight records here (files hocket-flight-*.jsonl): ranks write them when a call fails, into the "
        "directory that HOCKET_FLIGHT_RECORDER or set_flight_recorder names");
  }
  return result;
}

}  // namespace flight
