// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages that the ranks of a communicator exchange when a call does not proceed normally, and their encoding as
/// control messages.
///
/// A *revocation* ends the communicator and gives the reason. An *inquiry* goes to a peer that this rank waits for, and
/// describes this rank's call: a peer whose own call differs detects a mismatch, with both call sites. It also carries
/// the sequence and history of the calls before; if some of these differ, the next inquiry is about the first of them.
/// A *question* asks a peer which rank it waits for in turn, and an *answer* names that rank: so a timeout names the
/// rank at the end of the chain. A question may also ask for the call site of a call or message whose length does not
/// match. With *votes*, survivors agree on which ranks are left: see group/shrink.hpp. The bytes come from other
/// processes and are not trusted: a message that can't be decoded is ignored.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/transport/concept.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

struct revocation {
  std::int32_t code = 0;       ///< of `errc`
  std::int32_t reporter = -1;  ///< the rank that failed first; -1: unknown
  std::int32_t culprit = -1;   ///< the rank that caused the failure; -1: unknown
  std::string reason;          ///< reason and location: see `failure::quoted`
};

/// Position in a rank's call history when a call began: see `call_record`.
struct call_start {
  std::uint32_t sequence = 0;  ///< 0: no call
  std::uint32_t history = 0;
};

struct inquiry {
  call_start start;
  std::uint32_t signature = 0;
  std::string call;                       ///< as text
  std::uint64_t description = 0;          ///< at assertion level 3, hash of the whole call: see `call_record`
  std::array<call_start, 4> before = {};  ///< the calls before it, the last one first
};

/// An inquiry that was received and could not be settled yet.
struct open_inquiry {
  int peer = -1;  ///< the rank that asks
  inquiry asked;
  bool pursued = false;  ///< sent an inquiry about an earlier call; this one counts if that settles nothing by `until`
  deadline until;
};

struct question {
  enum class subject : std::uint32_t {
    position,  ///< which rank the peer waits for
    call,      ///< the peer's call with that number
    message    ///< the peer's last message with that tag to the asking rank
  };
  subject about = subject::position;
  std::uint32_t number = 0;
};

struct answer {
  std::int32_t awaited = -1;  ///< -1: none
  std::string call;           ///< empty: unknown
};

struct vote {
  std::uint32_t round = 0;   ///< number of the `shrink` call
  std::uint32_t number = 0;  ///< number of the step in that call
  std::string content;

  friend bool operator==(const vote&, const vote&) = default;
};

/// Votes on a communicator that a rank retains from one call of `shrink` to the next.
struct vote_history {
  std::vector<std::pair<int, vote>> received;  ///< each with the rank that cast it
  std::uint32_t last_round = 0;                ///< the last round in which this rank has voted
  /// Round and number of the newest known vote of each rank; empty before the first `shrink`.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> newest;
  /// Success vote of the latest `shrink` that reached its last step: a rank that cast it has continued. Round 0: none.
  vote conclusion;
};

using control = std::variant<revocation, inquiry, question, answer, vote>;

/// Truncates text that does not fit.
class control_writer {
 public:
  explicit control_writer(std::size_t kind) { number(static_cast<std::uint32_t>(kind)); }

  control_writer& number(std::uint32_t value) {
    const auto* const begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
    return *this;
  }
  control_writer& number(std::uint64_t value) {
    return number(static_cast<std::uint32_t>(value)).number(static_cast<std::uint32_t>(value >> 32));
  }
  control_writer& number(std::int32_t value) { return number(static_cast<std::uint32_t>(value)); }

  /// Appends text, which must come last in a message, and returns the message.
  std::vector<std::byte> text(std::string_view value) {
    value = value.substr(0, transport::control_message::most_bytes - bytes_.size());
    const auto* const begin = reinterpret_cast<const std::byte*>(value.data());
    bytes_.insert(bytes_.end(), begin, begin + value.size());
    return std::move(bytes_);
  }

 private:
  std::vector<std::byte> bytes_;
};

class control_reader {
 public:
  explicit control_reader(std::span<const std::byte> bytes) noexcept : rest_(bytes) {}

  std::uint32_t number() noexcept {
    std::uint32_t value = 0;
    if (rest_.size() < sizeof value) {
      whole_ = false;
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::uint64_t long_number() noexcept {
    const std::uint64_t low = number();
    return low | static_cast<std::uint64_t>(number()) << 32;
  }
  std::int32_t signed_number() noexcept { return static_cast<std::int32_t>(number()); }

  std::string text() const { return {reinterpret_cast<const char*>(rest_.data()), rest_.size()}; }

  bool whole() const noexcept { return whole_; }

 private:
  std::span<const std::byte> rest_;
  bool whole_ = true;
};

inline std::vector<std::byte> encode(const control& what) {
  control_writer writer(what.index());
  if (const auto* const details = std::get_if<revocation>(&what)) {
    return writer.number(details->code).number(details->reporter).number(details->culprit).text(details->reason);
  }
  if (const auto* const asked = std::get_if<inquiry>(&what)) {
    writer.number(asked->start.sequence).number(asked->start.history);
    writer.number(asked->signature).number(asked->description);
    for (const call_start& each : asked->before) writer.number(each.sequence).number(each.history);
    return writer.text(asked->call);
  }
  if (const auto* const wanted = std::get_if<question>(&what)) {
    return writer.number(static_cast<std::uint32_t>(wanted->about)).number(wanted->number).text("");
  }
  if (const auto* const answered = std::get_if<answer>(&what)) {
    return writer.number(answered->awaited).text(answered->call);
  }
  if (const auto* const voted = std::get_if<vote>(&what))
    return writer.number(voted->round).number(voted->number).text(voted->content);
  return writer.text("");
}

/// Returns nothing if `bytes` are not a valid message from one of `ranks` ranks.
inline std::optional<control> decode(std::span<const std::byte> bytes, int ranks) {
  control_reader reader(bytes);
  const auto rank = [&](bool optional) -> std::optional<std::int32_t> {
    const std::int32_t value = reader.signed_number();
    if (value >= (optional ? -1 : 0) && value < ranks) return value;
    return std::nullopt;
  };
  switch (reader.number()) {
    case 0: {
      const std::int32_t code = reader.signed_number();
      const auto reporter = rank(true);
      const auto culprit = rank(true);
      if (!reader.whole() || !reporter || !culprit) return std::nullopt;
      if (code < static_cast<int>(errc::timeout) || code > static_cast<int>(errc::system)) return std::nullopt;
      return revocation{code, *reporter, *culprit, reader.text()};
    }
    case 1: {
      const auto start = [&] {
        const std::uint32_t sequence = reader.number();
        return call_start{sequence, reader.number()};
      };
      inquiry asked{.start = start(), .signature = reader.number(), .call = {}, .description = reader.long_number()};
      for (call_start& each : asked.before) each = start();
      if (!reader.whole()) return std::nullopt;
      asked.call = reader.text();
      return asked;
    }
    case 2: {
      const std::uint32_t about = reader.number();
      const std::uint32_t number = reader.number();
      if (!reader.whole() || about > static_cast<std::uint32_t>(question::subject::message)) return std::nullopt;
      return question{static_cast<question::subject>(about), number};
    }
    case 3: {
      const auto awaited = rank(true);
      if (!reader.whole() || !awaited) return std::nullopt;
      return answer{*awaited, reader.text()};
    }
    case 4: {
      const std::uint32_t round = reader.number();
      const std::uint32_t number = reader.number();
      if (!reader.whole()) return std::nullopt;
      return vote{round, number, reader.text()};
    }
    default: return std::nullopt;
  }
}

/// Returns the first revocation among the unread control messages, if any, and discards the messages before it.
template <class Endpoints>
HOCKET_COLD std::optional<revocation> last_revocation(Endpoints& endpoints, int ranks) noexcept {
#if HOCKET_HAS_EXCEPTIONS
  try {
#endif
    transport::control_message mail;
    while (endpoints.fetch(mail)) {
      const std::optional<control> message = decode(mail.bytes, ranks);
      if (message && std::holds_alternative<revocation>(*message)) return std::get<revocation>(*message);
    }
#if HOCKET_HAS_EXCEPTIONS
  } catch (...) {  // no memory to read the message
  }
#endif
  return std::nullopt;
}

}  // namespace detail
HOCKET_END_NAMESPACE
