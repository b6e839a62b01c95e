// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Files of samples: how they are opened, how little-endian numbers are read from them, and how damage is reported. The
/// bytes come from outside: each number is checked before it is used.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/mapped_file.hpp>
#include <hocket/core/text.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// The bytes of a file in memory, its name for errors, and what keeps the bytes valid: a mapping, or a file of a cache.
/// Copies refer to the same bytes. Sources read from it.
class opened_file {
 public:
  opened_file() = default;
  opened_file(std::string name, std::span<const std::byte> bytes, std::shared_ptr<const void> keeper)
      : name_(std::move(name)), bytes_(bytes), keeper_(std::move(keeper)) {}

  const std::string& name() const noexcept { return name_; }
  std::span<const std::byte> bytes() const& noexcept { return bytes_; }
  std::span<const std::byte> bytes() const&& = delete;  // they may be gone with the object

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
  std::shared_ptr<const void> keeper_;
};

/// Maps a local file, which must not become shorter while it is used. Raises `system` if it can't be mapped.
inline opened_file open_file(const std::string& path) {
  std::string problem;
  auto mapping = std::make_shared<const platform::mapped_file>(path, problem);
  if (!problem.empty()) raise(errc::system, hocket::detail::concat({"cannot map '", path, "': ", problem}));
  return {path, mapping->bytes(), mapping};
}

/// Something with numbered samples, from which a loader makes batches. `append` adds one sample to a batch; it may be
/// called by several threads with different batches. `batch_type` has a default constructor and `clear`.
template <class Source, class Sample = std::uint64_t>
concept source = std::default_initializable<typename Source::batch_type> &&
                 requires(const Source& from, const Sample& sample, typename Source::batch_type& to) {
                   from.append(sample, to);
                   to.clear();
                 };

namespace detail {

static_assert(std::endian::native == std::endian::little, "files of samples are little-endian");

/// The bytes of a file, with its name for errors.
struct named_bytes {
  std::string name;
  std::span<const std::byte> bytes;
};

inline named_bytes bytes_of(const opened_file& file) { return {file.name(), file.bytes()}; }

/// Raises an error that names the file and the offset of what is wrong: `corrupted`, or `invalid_argument` for a file
/// that is whole but not supported.
[[noreturn]] HOCKET_COLD inline void refuse(const named_bytes& file, std::uint64_t at, std::string_view reason,
                                            errc code = errc::corrupted) {
  raise(code, hocket::detail::concat({"'", file.name, "' at byte ", at, ": ", reason}));
}

/// Returns the number at `at`, which may be at any address; the bytes must be there.
template <class Number>
Number number_at(std::span<const std::byte> bytes, std::uint64_t at) noexcept {
  Number result;
  std::memcpy(&result, bytes.data() + at, sizeof result);
  return result;
}

inline std::string_view text_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace detail
}  // namespace data
HOCKET_END_NAMESPACE
