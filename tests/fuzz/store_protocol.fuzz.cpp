// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages of the TCP store: hellos and requests, which any process that reaches the port may send, and joined blobs,
/// which the store sends. The first byte is the kind of message, the rest is the message.
#include "fuzz.hpp"

#include <hocket/bootstrap/blob.hpp>
#include <hocket/bootstrap/tcp_protocol.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace {

using fuzz::require;
namespace detail = hocket::bootstrap::detail;
using hocket::bootstrap::blob;
using hocket::bootstrap::byte_view;

/// Checks the laws of every message that was decoded. `written`: its encoding by this side.
template <class Message>
void check_whole(byte_view bytes, std::size_t size, const blob& written) {
  require(size <= bytes.size(), "a message ends within the bytes that it was read from");
  require(std::ranges::equal(written, bytes.first(size)), "the encoding of a decoded message equals its bytes");
  Message part;
  std::size_t ignored = 0;
  require(detail::decode(bytes.first(size - 1), part, ignored) == detail::decoded::incomplete,
          "a message without its last byte is incomplete");
}

void decode_hello(byte_view bytes) {
  detail::hello greeting;
  std::size_t size = 0;
  if (detail::decode(bytes, greeting, size) == detail::decoded::complete) {
    check_whole<detail::hello>(bytes, size, detail::encode(greeting));
  }
}

void decode_request(byte_view bytes) {
  detail::request what;
  std::size_t size = 0;
  if (detail::decode(bytes, what, size) != detail::decoded::complete) return;
  blob written = detail::encode_head(what, what.key, what.value.size());
  detail::append_bytes(written, what.value);
  check_whole<detail::request>(bytes, size, written);
}

void read_blobs(byte_view bytes, int count) {
  detail::blob_reader reader(bytes);
  std::vector<blob> all;
  if (!detail::read_blobs(reader, count, all)) return;
  require(all.size() == static_cast<std::size_t>(count), "the number of blobs is the requested one");
  require(std::ranges::equal(detail::joined_blobs(all), bytes), "the encoding of decoded blobs equals their bytes");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const unsigned choice = in.byte();
  const byte_view bytes = in.rest();
  switch (choice) {
    case 'h': decode_hello(bytes); break;
    case 'r': decode_request(bytes); break;
    default: read_blobs(bytes, static_cast<int>(choice % 8)); break;
  }
  return 0;
}
