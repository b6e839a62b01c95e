// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Control messages, and the votes of shrink, written by other ranks of a communicator. The first byte is the number
/// of ranks, the rest is the message.
#include "fuzz.hpp"

#include <hocket/communicator/control.hpp>
#include <hocket/group/impl/shrink.ipp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace {

using fuzz::require;
namespace detail = hocket::detail;

void decode_message(std::span<const std::byte> bytes, int ranks) {
  const std::optional<detail::control> words = detail::decode(bytes, ranks);
  if (!words) return;
  const auto is_rank = [&](int rank) { return rank >= 0 && rank < ranks; };
  if (const auto* const told = std::get_if<detail::revocation>(&*words)) {
    require(fuzz::is_known(told->code), "a revocation has a code of hocket::errc");
    require(told->reporter == -1 || is_rank(told->reporter), "the reporter of a revocation is a rank or -1");
    require(told->culprit == -1 || is_rank(told->culprit), "the culprit of a revocation is a rank or -1");
  } else if (const auto* const said = std::get_if<detail::answer>(&*words)) {
    require(said->awaited == -1 || is_rank(said->awaited), "the awaited rank is valid or -1");
  }
  const std::vector<std::byte> written = detail::encode(*words);
  require(written.size() <= hocket::transport::control_message::most_bytes, "encoded words fit into a message");
  const std::optional<detail::control> again = detail::decode(written, ranks);
  require(again && again->index() == words->index(), "encoded words can be decoded");
  require(detail::encode(*again) == written, "decoding loses nothing");
  // A question has no text: the bytes behind it are ignored.
  const std::size_t kept = std::holds_alternative<detail::question>(*words)
                               ? 3 * sizeof(std::uint32_t)
                               : std::min(bytes.size(), hocket::transport::control_message::most_bytes);
  require(std::ranges::equal(written, bytes.first(kept)), "each message has one encoding");
}

void parse_vote(const std::string& text, std::size_t ranks) {
  const auto read = detail::survivor_set::parse(text, ranks);
  if (read.lost.empty()) return;
  require(read.lost.size() == ranks, "a vote states for each rank whether it is lost");
  require(read.context >= 1 && read.context <= hocket::transport::contexts::most, "the context of a vote is valid");
  const auto again = detail::survivor_set::parse(read.text(), ranks);
  require(again.context == read.context && again.lost == read.lost, "a parsed vote equals the vote that was written");
  auto sum = read;
  sum.add(again);
  require(sum.context == read.context && sum.lost == read.lost, "a vote added to itself changes nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const unsigned ranks = 1 + in.byte();
  const auto bytes = in.rest();
  decode_message(bytes, static_cast<int>(ranks));
  parse_vote(std::string(fuzz::text_of(bytes)), ranks);
  return 0;
}
