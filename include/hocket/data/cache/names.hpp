// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The names that files of a cache have: the last part of the remote name, for people, and a hash of name, length and
/// version, so that another version is another file.
///
///     shard-0007.tar-6f2c0a91b3d4e587                whole
///     shard-0007.tar-6f2c0a91b3d4e587.partial        a download that has not ended
///     shard-0007.tar-6f2c0a91b3d4e587.partial.json   what is downloaded; see data/cache/partial_record.hpp
#pragma once

#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/remote/source.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

HOCKET_BEGIN_NAMESPACE
namespace data {
namespace detail {

inline constexpr std::string_view partial_suffix = ".partial", record_suffix = ".partial.json";
inline constexpr std::size_t hash_digits = 16;

inline bool is_lower_hexadecimal(char c) noexcept { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'f'); }

/// Returns a number as 16 hexadecimal digits.
inline std::string hexadecimal(std::uint64_t number) {
  std::string result(hash_digits, '0');
  for (std::size_t i = hash_digits; i-- > 0; number >>= 4) result[i] = "0123456789abcdef"[number & 15];
  return result;
}

/// Returns the last part of a URL without its query, with letters that every file system and shell accepts.
inline std::string readable_name(std::string_view name) {
  constexpr std::size_t most = 80;
  name = name.substr(0, name.find_first_of("?#"));
  while (name.ends_with('/')) name.remove_suffix(1);
  name = name.substr(name.rfind('/') + 1);
  std::string result(name.substr(0, most));
  for (char& c : result) {
    const bool is_kept =
        ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-' || c == '_' || c == '.';
    if (!is_kept) c = '_';
  }
  if (result.empty() || result.front() == '.') result.insert(0, "_");
  return result;
}

}  // namespace detail

/// Returns the name in the folder of a cache of one version of a file.
inline std::string cached_name(const remote_file& file) {
  const std::string whole = hocket::detail::concat({file.name, '\0', file.version, '\0', file.bytes});
  const std::uint64_t hash = hocket::detail::checksum(std::as_bytes(std::span(whole)));
  return hocket::detail::concat({detail::readable_name(file.name), '-', detail::hexadecimal(hash)});
}

/// Returns whether a name is one that `cached_name` returns.
inline bool is_cached_name(std::string_view name) noexcept {
  if (name.size() < detail::hash_digits + 2) return false;
  const std::string_view hash = name.substr(name.size() - detail::hash_digits);
  return name[name.size() - detail::hash_digits - 1] == '-' && name.front() != '.' &&
         std::all_of(hash.begin(), hash.end(), detail::is_lower_hexadecimal);
}

}  // namespace data
HOCKET_END_NAMESPACE
