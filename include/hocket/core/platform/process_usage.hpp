// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a process has used: processor time, memory, page faults, bytes of disks; and the bytes of the network interfaces
/// that it sees.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/platform/input_file.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

HOCKET_BEGIN_NAMESPACE
namespace platform {

struct process_usage {
  double processor_seconds = 0;  ///< of all threads, in the program and in the kernel
  std::uint64_t minor_faults = 0, major_faults = 0;
  std::optional<std::uint64_t> resident_bytes;             ///< now
  std::optional<std::uint64_t> read_bytes, written_bytes;  ///< that storage has transferred; empty if it is not known
};

struct interface_usage {
  std::string name;
  std::uint64_t received_bytes = 0, sent_bytes = 0;
};

/// Returns all of a file in /proc; empty if it can't be read.
inline std::string read_process_file(const std::string& path) {
  input_file file(path, file_kinds::regular);
  std::string result;
  std::array<char, 4096> piece;
  for (std::size_t count = piece.size(); file && count == piece.size();) {
    count = file.read(std::as_writable_bytes(std::span(piece)));
    result.append(piece.data(), count);
  }
  return result;
}

/// Removes the first word from `text`, and returns it as a number; empty if it is none.
inline std::optional<std::uint64_t> next_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint64_t result = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
  if (error != std::errc()) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return result;
}

/// Returns the number after `name` at the beginning of a line, as in /proc/self/io; empty if there is none.
inline std::optional<std::uint64_t> number_after(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    if (at > 0 && text[at - 1] != '\n') continue;
    text.remove_prefix(at + name.size());
    return next_number(text);
  }
  return {};
}

/// Returns the interfaces of a text as in /proc/net/dev: after two lines of headings, a line for each, with the bytes
/// received first, and the bytes sent as the ninth number.
inline std::vector<interface_usage> interfaces_in(std::string_view text) {
  std::vector<interface_usage> result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    const std::size_t begin = std::min(line.find_first_not_of(' '), colon);
    interface_usage each{std::string(line.substr(begin, colon - begin)), 0, 0};
    line.remove_prefix(colon + 1);
    std::array<std::optional<std::uint64_t>, 9> numbers;
    for (auto& number : numbers) number = next_number(line);
    if (!numbers.front() || !numbers.back()) continue;
    each.received_bytes = *numbers.front();
    each.sent_bytes = *numbers.back();
    result.push_back(each);
  }
  return result;
}

/// Returns what this process has used since it began.
inline process_usage usage_of_this_process() {
  process_usage result;
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  for (const timeval& each : {used.ru_utime, used.ru_stime})
    result.processor_seconds += static_cast<double>(each.tv_sec) + static_cast<double>(each.tv_usec) * 1e-6;
  result.minor_faults = static_cast<std::uint64_t>(used.ru_minflt);
  result.major_faults = static_cast<std::uint64_t>(used.ru_majflt);
  const std::string memory = read_process_file("/proc/self/statm");
  std::string_view numbers = memory;
  next_number(numbers);
  if (const auto pages = next_number(numbers))
    result.resident_bytes = *pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::string storage = read_process_file("/proc/self/io");
  result.read_bytes = number_after(storage, "read_bytes:");
  result.written_bytes = number_after(storage, "write_bytes:");
  return result;
}

/// Returns the interfaces of this process's network namespace.
inline std::vector<interface_usage> usage_of_interfaces() {
  return interfaces_in(read_process_file("/proc/self/net/dev"));
}

}  // namespace platform
HOCKET_END_NAMESPACE
