// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Message formats between client and server of the TCP store. No I/O here.
///
/// A client begins with a hello of fixed layout, which no later version may change, so that any two versions can report
/// that they are incompatible. The server answers the hello, like each later request, with one reply. The token
/// excludes other jobs and foreign connections; it travels in clear text and is not encryption.
#pragma once

#include <hocket/bootstrap/blob.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace bootstrap::detail {

inline constexpr std::string_view hello_magic = "hocket\r\n";
inline constexpr std::uint32_t byte_order_mark = 0x01020304;
inline constexpr std::uint32_t protocol_version = 1;
inline constexpr std::uint32_t library_version =
    HOCKET_VERSION_MAJOR * 1000000 + HOCKET_VERSION_MINOR * 1000 + HOCKET_VERSION_PATCH;

inline constexpr std::size_t hello_size = 32;
inline constexpr std::size_t max_token_size = 1024;
inline constexpr std::size_t request_size = 32;
inline constexpr std::size_t reply_size = 24;
inline constexpr std::size_t max_key_size = 4096;
/// The longest blob that a rank may send: far larger than any address, far smaller than a machine's memory.
inline constexpr std::uint64_t max_blob_size = std::uint64_t{64} << 20;

inline std::string version_text(std::uint32_t version) {
  return hocket::detail::concat({version / 1000000, '.', version / 1000 % 1000, '.', version % 1000});
}

/// A negative rank in a launcher's hello reports that a rank has failed.
constexpr std::int32_t encode_failed_rank(std::int32_t rank) noexcept { return -1 - rank; }
constexpr std::int32_t decode_failed_rank(std::int32_t code) noexcept { return -1 - code; }

/// Identifies a client. Only the byte order mark is in the machine's own byte order.
struct hello {
  std::uint32_t byte_order = byte_order_mark;
  std::uint32_t protocol = protocol_version;
  std::uint32_t version = library_version;
  std::int32_t rank = 0;
  std::int32_t ranks = 1;
  std::string token;
};

inline void append_byte_order(blob& out, std::uint32_t mark) {
  std::byte raw[sizeof mark];
  std::memcpy(raw, &mark, sizeof mark);
  append_bytes(out, raw);
}

inline std::uint32_t read_byte_order(blob_reader& reader) {
  std::uint32_t mark = 0;
  const byte_view raw = reader.bytes(sizeof mark);
  if (raw.size() == sizeof mark) std::memcpy(&mark, raw.data(), sizeof mark);
  return mark;
}

inline blob encode(const hello& greeting) {
  blob out = text_blob(hello_magic);
  append_byte_order(out, greeting.byte_order);
  append_integer(out, greeting.protocol);
  append_integer(out, greeting.version);
  append_integer(out, greeting.rank);
  append_integer(out, greeting.ranks);
  append_integer(out, static_cast<std::uint32_t>(greeting.token.size()));
  append_bytes(out, text_bytes(greeting.token));
  return out;
}

enum class decoded { incomplete, nonsense, complete };

/// Decodes a hello at the front of `bytes`; sets `size` to its length. Detects the first invalid byte of the magic.
inline decoded decode(byte_view bytes, hello& greeting, std::size_t& size) {
  const std::size_t known = bytes.size() < hello_magic.size() ? bytes.size() : hello_magic.size();
  if (blob_text(bytes.first(known)) != hello_magic.substr(0, known)) return decoded::nonsense;
  if (bytes.size() < hello_size) return decoded::incomplete;
  blob_reader reader(bytes.subspan(hello_magic.size()));
  greeting.byte_order = read_byte_order(reader);
  greeting.protocol = reader.integer<std::uint32_t>();
  greeting.version = reader.integer<std::uint32_t>();
  greeting.rank = reader.integer<std::int32_t>();
  greeting.ranks = reader.integer<std::int32_t>();
  const auto token_size = reader.integer<std::uint32_t>();
  if (token_size > max_token_size) return decoded::nonsense;
  size = hello_size + token_size;
  if (bytes.size() < size) return decoded::incomplete;
  greeting.token = blob_text(reader.bytes(token_size));
  return decoded::complete;
}

/// The last two end the connection, and may be sent while an answer is awaited. `cancel` is answered, `goodbye` is
/// not.
enum class request_kind : std::uint32_t { set = 1, get, add, gather, goodbye, cancel };
inline constexpr request_kind last_request_kind = request_kind::cancel;

struct request {
  request_kind kind = request_kind::set;
  std::string key;
  blob value;
  std::uint64_t nanoseconds = 0;  ///< time that the client waits; all bits set: forever
  std::int64_t number = 0;        ///< argument of `add`
};

/// Encodes a request without its value, which follows.
inline blob encode_head(const request& what, std::string_view key, std::uint64_t value_size) {
  blob out;
  out.reserve(request_size + key.size());
  append_integer(out, static_cast<std::uint32_t>(what.kind));
  append_integer(out, static_cast<std::uint32_t>(key.size()));
  append_integer(out, value_size);
  append_integer(out, what.nanoseconds);
  append_integer(out, what.number);
  append_bytes(out, text_bytes(key));
  return out;
}

inline decoded decode(byte_view bytes, request& what, std::size_t& size) {
  if (bytes.size() < request_size) return decoded::incomplete;
  blob_reader reader(bytes);
  const auto kind = reader.integer<std::uint32_t>();
  const auto key_size = reader.integer<std::uint32_t>();
  const auto value_size = reader.integer<std::uint64_t>();
  if (kind < 1 || kind > static_cast<std::uint32_t>(last_request_kind)) return decoded::nonsense;
  if (key_size > max_key_size || value_size > max_blob_size) return decoded::nonsense;
  size = request_size + key_size + static_cast<std::size_t>(value_size);
  if (bytes.size() < size) return decoded::incomplete;
  what.kind = static_cast<request_kind>(kind);
  what.nanoseconds = reader.integer<std::uint64_t>();
  what.number = reader.integer<std::int64_t>();
  what.key = blob_text(reader.bytes(key_size));
  const byte_view value = reader.bytes(value_size);
  what.value.assign(value.begin(), value.end());
  return decoded::complete;
}

/// True if the client sends no further request.
inline bool is_leave_request(request_kind kind) noexcept {
  return kind == request_kind::goodbye || kind == request_kind::cancel;
}

/// Status instead of an `errc`: this server is shutting down, and the client must retry to reach the next one.
inline constexpr std::uint32_t status_server_closing = 1000;

/// The answer to a hello or a request. `status` is 0 or an `errc`; for an `errc`, the body is its reason.
struct reply {
  std::uint32_t status = 0;
  std::int32_t peer = -1;
  std::int64_t number = 0;
  std::shared_ptr<const blob> body;
};

inline reply make_reply(blob body = {}, std::int64_t number = 0) {
  return {0, -1, number, std::make_shared<const blob>(std::move(body))};
}

inline reply make_refusal(std::uint32_t status, std::string_view reason, std::int32_t peer = -1) {
  return {status, peer, 0, std::make_shared<const blob>(text_blob(reason))};
}

inline blob encode_head(const reply& answer) {
  blob out;
  append_integer(out, answer.status);
  append_integer(out, answer.peer);
  append_integer(out, static_cast<std::uint64_t>(answer.body ? answer.body->size() : 0));
  append_integer(out, answer.number);
  return out;
}

/// Precedes the reply to a hello, so that a client can check that the server is a hocket store.
inline blob encode_hello_answer() {
  blob out = text_blob(hello_magic);
  append_byte_order(out, byte_order_mark);
  return out;
}

/// Compares in a time that does not depend on the position of the first difference.
inline bool equal_in_constant_time(std::string_view given, std::string_view expected) noexcept {
  std::size_t difference = given.size() ^ expected.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char other = expected.empty() ? '\0' : expected[i % expected.size()];
    difference |= static_cast<std::size_t>(static_cast<unsigned char>(given[i] ^ other));
  }
  return difference == 0;
}

}  // namespace bootstrap::detail

HOCKET_END_NAMESPACE
