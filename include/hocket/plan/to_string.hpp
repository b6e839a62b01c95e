// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Actions and plans as text, for error messages and inspection. `send out[3..5) to rank 2 on channel 1 (join)`: sends
/// chunks 3 and 4 of `out` after all earlier sends of the lane have drained. Indices count chunks in `in` and `out`,
/// and slots in `scratch`. `op` is the reduction operation, between its operands in order. See plan/action.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/text.hpp>
#include <hocket/plan/action.hpp>
#include <hocket/plan/plan.hpp>

#include <string>

HOCKET_BEGIN_NAMESPACE
namespace plan {

constexpr const char* to_string(action_kind what) noexcept {
  switch (what) {
    case action_kind::copy: return "copy";
    case action_kind::send: return "send";
    case action_kind::receive: return "receive";
    case action_kind::receive_reduce: return "receive_reduce";
    case action_kind::load: return "load";
    case action_kind::load_reduce: return "load_reduce";
    case action_kind::push: return "push";
    case action_kind::signal: return "signal";
    case action_kind::wait: return "wait";
  }
  return "unknown";
}

constexpr const char* to_string(region where) noexcept {
  switch (where) {
    case region::none: return "none";
    case region::in: return "in";
    case region::out: return "out";
    case region::scratch: return "scratch";
    case region::inbox: return "inbox";
  }
  return "unknown";
}

namespace detail {

inline std::string range_text(const char* name, std::uint32_t first, std::uint32_t count) {
  std::string text = hocket::detail::concat({name, '[', first});
  if (count != 1) hocket::detail::append(text, {"..", first + count, ')'});
  else text += ']';
  return text;
}

inline std::string source_text(const action& what) {
  return what.count == 0 ? "nothing" : range_text(to_string(what.from), what.from_at, what.count);
}

inline std::string target_text(const action& what) {
  return what.count == 0 ? "nothing" : range_text(to_string(what.to), what.to_at, what.count);
}

inline std::string peer_text(const action& what) {
  return what.peer == all_peers ? "all peers" : hocket::detail::concat({"rank ", what.peer});
}

inline std::string channel_text(const action& what) {
  return what.channel == 0 ? std::string() : hocket::detail::concat({" on channel ", what.channel});
}

/// Returns whether source or target begins at chunk `what.chunk`, which gives the length: the text then omits it.
inline bool implies_chunk(const action& what) {
  const auto is_chunk = [&](region where, std::uint32_t at) {
    return (where == region::in || where == region::out) && at == what.chunk;
  };
  return what.count == 0 || is_chunk(what.from, what.from_at) || is_chunk(what.to, what.to_at);
}

inline std::string sentence(const action& what) {
  switch (what.kind) {
    case action_kind::copy: return hocket::detail::concat({"copy ", source_text(what), " to ", target_text(what)});
    case action_kind::send:
      return hocket::detail::concat({"send ", source_text(what), " to ", peer_text(what), channel_text(what)});
    case action_kind::receive:
      return hocket::detail::concat({"receive ", target_text(what), " from ", peer_text(what), channel_text(what)});
    case action_kind::receive_reduce:
      return hocket::detail::concat(
          {"receive_reduce ", target_text(what), " = ",
           what.message_first ? "message op " + source_text(what) : source_text(what) + " op message", " from ",
           peer_text(what), channel_text(what)});
    case action_kind::load:
      return hocket::detail::concat({"load ", peer_text(what), "'s ", source_text(what), " to ", target_text(what)});
    case action_kind::load_reduce:
      return hocket::detail::concat({"load_reduce ", target_text(what), " = op over all ranks' ",
                                     what.from == region::inbox ? "places in the inbox" : source_text(what)});
    case action_kind::push:
      return hocket::detail::concat(
          {"push ", source_text(what), " to the inbox of ", peer_text(what), " with tag ", what.tag});
    case action_kind::signal: return hocket::detail::concat({"signal tag ", what.tag, " to ", peer_text(what)});
    case action_kind::wait:
      return hocket::detail::concat({what.from == region::inbox ? "wait for the push with tag " : "wait for tag ",
                                     what.tag, " from ", peer_text(what)});
  }
  return "unknown action";
}

}  // namespace detail

/// Returns the action as one line of text.
inline std::string to_string(const action& what) {
  std::string text = detail::sentence(what);
  if (!detail::implies_chunk(what))
    text += ", with the length of " + detail::range_text("chunk", what.chunk, what.count);
  if (what.join) text += " (join)";
  return text;
}

/// Returns the actions of one rank, one per line. If the rank has several lanes, a line with its number precedes each.
template <algorithm Plan>
std::string to_string(const Plan& plan, int ranks, int rank) {
  const unsigned lanes = plan.shape(ranks).lanes;
  std::string text = hocket::detail::concat({"rank ", rank, '\n'});
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (lanes > 1) hocket::detail::append(text, {"  lane ", lane, '\n'});
    const unsigned length = plan.length(ranks, rank, lane);
    const std::size_t width = std::to_string(length == 0 ? 0 : length - 1).size();
    for (unsigned i = 0; i < length; ++i) {
      const std::string number = std::to_string(i);
      hocket::detail::append(text, {std::string((lanes > 1 ? 4 : 2) + width - number.size(), ' '), number, "  "});
      text += to_string(plan.at(ranks, rank, lane, i)) + '\n';
    }
  }
  return text;
}

/// Returns the whole plan as text: one line with its name, collective and sizes, then the actions of each rank.
template <algorithm Plan>
std::string to_string(const Plan& plan, int ranks) {
  const shape form = plan.shape(ranks);
  const auto number = [](std::size_t count, const char* noun) {
    return hocket::detail::concat({count, ' ', noun, count == 1 ? "" : "s"});
  };
  std::string text = hocket::detail::concat(
      {plan.name(), ": ", to_string(plan.collective().kind), " over ", number(static_cast<std::size_t>(ranks), "rank"),
       ", ", number(static_cast<std::size_t>(plan.collective().blocks(ranks)), "block"), " of ",
       number(form.chunks_per_block, "chunk"), ", ", number(form.scratch, "scratch slot"), ", ",
       number(form.lanes, "lane"), form.lanes == 1 ? "\n" : " per rank\n"});
  for (int rank = 0; rank < ranks; ++rank) text += to_string(plan, ranks, rank);
  return text;
}

}  // namespace plan
HOCKET_END_NAMESPACE
