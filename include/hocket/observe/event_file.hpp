// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The files that TensorBoard reads: events as protocol buffers, each in a record with its length and checksums.
///
///     record  = u64 length, u32 masked(crc32c(length)), bytes, u32 masked(crc32c(bytes))     (little-endian)
///     Event   = 1: double wall_time, 2: int64 step, one of 3: string file_version, 5: Summary, 7: SessionLog
///     Summary = 1: Value { 1: tag, 9: metadata, one of 2: float, 4: Image, 5: HistogramProto, 8: TensorProto }, repeated
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/crc32c.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/platform/output_file.hpp>
#include <hocket/core/platform/process.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

/// Appends `bytes` bytes of `value`, the least significant one first.
inline void append_little_endian(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 0xffU);
}

/// Encodes one message of protocol buffers, field by field.
class protobuf {
 public:
  protobuf& integer(unsigned field, std::int64_t value) {
    append_varint(field << 3U);
    append_varint(static_cast<std::uint64_t>(value));
    return *this;
  }
  protobuf& real(unsigned field, double value) {
    append_varint(field << 3U | 1U);
    append_little_endian(bytes_, std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  protobuf& real(unsigned field, float value) {
    append_varint(field << 3U | 5U);
    append_little_endian(bytes_, std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  protobuf& reals(unsigned field, std::span<const double> values) {
    append_varint(field << 3U | 2U);
    append_varint(8 * values.size());
    for (const double each : values) append_little_endian(bytes_, std::bit_cast<std::uint64_t>(each), 8);
    return *this;
  }
  /// Adds bytes, a text in UTF-8, or another message.
  protobuf& text(unsigned field, std::string_view value) {
    append_varint(field << 3U | 2U);
    append_varint(value.size());
    bytes_ += value;
    return *this;
  }
  protobuf& message(unsigned field, const protobuf& value) { return text(field, value.bytes_); }

  const std::string& bytes() const noexcept { return bytes_; }

 private:
  void append_varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) bytes_ += static_cast<char>((value & 0x7fU) | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// Returns a checksum as records have it: masked, because bytes that contain their own checksum are hard to check.
inline std::uint32_t masked_checksum(std::string_view bytes) noexcept {
  const std::uint32_t sum = crc32c().add(std::as_bytes(std::span(bytes))).value();
  return std::rotr(sum, 15) + 0xa282ead8U;
}

inline std::string record_of(std::string_view event) {
  std::string result;
  append_little_endian(result, event.size(), 8);
  append_little_endian(result, masked_checksum(result), 4);
  result += event;
  append_little_endian(result, masked_checksum(event), 4);
  return result;
}

inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// A new file of events in a folder. Readers sort the files of a folder by name, which begins with the time. The clock
/// may be behind that of the host that wrote the newest file: the new one still gets a name after it.
class event_file {
 public:
  /// **Errors.** `system` if the folder or the file can't be created.
  explicit event_file(const std::string& folder) {
    int error = platform::make_folders(folder);
    std::string newest;
    if (error == 0) error = find_newest(folder, newest);
    bool is_taken = error == 0;
    for (std::int64_t second = first_second(newest); is_taken && second <= last_second; ++second) {
      const std::string name = hocket::detail::concat({begin_of_name, second, '.', platform::host_name(), '.'});
      for (int i = 1000; is_taken && i < 2000; ++i) {  // several files of one second, in order
        const std::string numbered = name + std::to_string(i).substr(1);
        if (numbered <= newest) continue;
        error = file_.open(hocket::detail::concat({folder, '/', numbered}), platform::existing_file::refuse);
        is_taken = error == EEXIST;
      }
    }
    if (is_taken) error = EEXIST;
    if (error != 0) {
      raise(
          platform::system_failure(hocket::detail::concat({"cannot create a file of events in '", folder,
                                                           "': name a folder in which this process may create files"}),
                                   error));
    }
    append(protobuf().text(3, "brain.Event:2"), 0);
  }

  /// Appends an event with the fields of `content`.
  void append(const protobuf& content, std::int64_t step) {
    protobuf event;
    event.real(1, seconds_since_1970()).integer(2, step);
    if (failure cause = file_.write(record_of(event.bytes() + content.bytes()))) raise(std::move(cause));
  }

  const std::string& path() const noexcept { return file_.path(); }

 private:
  static constexpr std::string_view begin_of_name = "events.out.tfevents.";
  static constexpr std::int64_t last_second = 9'999'999'999;  // names of later ones are not in order

  /// Returns the second in a name of a file of events; 0 if it has none, or not one of 10 digits, as until the year
  /// 2286.
  static std::int64_t second_of(std::string_view name) noexcept {
    constexpr std::size_t digits = 10;
    if (!name.starts_with(begin_of_name)) return 0;
    name.remove_prefix(begin_of_name.size());
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), result);
    return error == std::errc() && end == name.data() + digits ? result : 0;
  }

  /// Sets `newest` to the last name of a file of events in the folder; empty if there is none. Returns 0, or an error
  /// number.
  static int find_newest(const std::string& folder, std::string& newest) {
    std::vector<std::string> names;
    platform::file_system files;
    if (const int error = files.list(folder, names); error != 0) return error;
    for (std::string& each : names) {
      if (second_of(each) > 0 && each > newest) newest = std::move(each);
    }
    return 0;
  }

  /// Returns the time of the new file: now, or that of a newer file.
  static std::int64_t first_second(std::string_view newest) {
    return std::max(static_cast<std::int64_t>(seconds_since_1970()), second_of(newest));
  }

  platform::output_file file_;
};

}  // namespace detail
}  // namespace observe
HOCKET_END_NAMESPACE
