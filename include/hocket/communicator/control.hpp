// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What ranks of a communicator say to each other when a call does not go as it should, and how that is written into
/// control messages.
///
/// A *revocation* ends the communicator and says why. An *inquiry* goes to a peer that keeps us waiting, and says which
/// call we are in: whoever finds that its own call differs knows of a mismatch, with both call sites. It also tells, in
/// numbers, how the calls before went: where some of these differ, the next inquiry is about the first. A *question*
/// asks a peer whom it waits for in turn, and an *answer* says so: that is how a timeout blames the rank at the end of
/// the chain. It may also ask where a call or a message came from, of which the lengths differ. With *votes* survivors agree on who is left: see group/shrink.hpp.
///
/// The bytes come from other processes, so nothing is believed about them: what can't be read is no message.
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
  std::int32_t reporter = -1;  ///< the rank that failed first; -1: nobody knows
  std::int32_t culprit = -1;   ///< whom it blames; -1: nobody
  std::string reason;          ///< and where: see `failure::quoted`
};

/// Where the calls of a rank stood when one of them began: see `call_record`.
struct call_start {
  std::uint32_t sequence = 0;  ///< 0: no call
  std::uint32_t history = 0;
};

struct inquiry {
  call_start start;
  std::uint32_t signature = 0;
  std::string call;                       ///< in words
  std::uint64_t description = 0;          ///< at assertion level 3, all of it: see `call_record`
  std::array<call_start, 4> before = {};  ///< of the calls before it, the last one first
};

/// An inquiry that has come and could not be settled yet.
struct open_inquiry {
  int peer = -1;  ///< who asks
  inquiry asked;
  bool pursued = false;  ///< the peer was told of an earlier call; if that settles nothing until then, this one counts
  deadline until;
};

struct question {
  enum class subject : std::uint32_t {
    position,  ///< whom the peer waits for
    call,      ///< its call with that number
    message    ///< the last message with that tag to who asks
  };
  subject about = subject::position;
  std::uint32_t number = 0;
};

struct answer {
  std::int32_t awaited = -1;  ///< -1: nobody
  std::string call;           ///< empty: it is not known
};

struct vote {
  std::uint32_t round = 0;   ///< which call of `shrink` it belongs to
  std::uint32_t number = 0;  ///< and which step of it
  std::string content;

  friend bool operator==(const vote&, const vote&) = default;
};

/// What a rank keeps of the votes of a communicator, from one call of `shrink` to the next.
struct vote_history {
  std::vector<std::pair<int, vote>> received;  ///< with the rank that cast each
  std::uint32_t last_round = 0;                ///< in which this rank has voted
  /// Round and number of the newest vote of each rank that is known of; empty before the first `shrink`.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> newest;
  /// Whoever has cast this one has gone on. Of the last call of `shrink` that came so far; round 0: none did.
  vote conclusion;
};

using control = std::variant<revocation, inquiry, question, answer, vote>;

/// Text that does not fit is cut.
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

  /// The last thing in a message.
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
  if (const auto* const told = std::get_if<revocation>(&what)) {
    return writer.number(told->code).number(told->reporter).number(told->culprit).text(told->reason);
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

/// Nothing if `bytes` are no message from one of `ranks` ranks.
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

/// What a peer has told that nobody has read yet, as no call was made since; what else has come is dropped.
template <class Endpoints>
HOCKET_COLD std::optional<revocation> last_revocation(Endpoints& endpoints, int ranks) noexcept {
#if HOCKET_HAS_EXCEPTIONS
  try {
#endif
    transport::control_message mail;
    while (endpoints.fetch(mail)) {
      const std::optional<control> words = decode(mail.bytes, ranks);
      if (words && std::holds_alternative<revocation>(*words)) return std::get<revocation>(*words);
    }
#if HOCKET_HAS_EXCEPTIONS
  } catch (...) {  // no memory to read it
  }
#endif
  return std::nullopt;
}

}  // namespace detail
HOCKET_END_NAMESPACE
