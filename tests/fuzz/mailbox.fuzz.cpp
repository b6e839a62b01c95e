// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How a rank handles the control messages of its peers: in a call, and in the vote of survivors. The first byte is the
/// number of calls that this rank has made. Messages follow: a byte for the sender, one for the size, and the bytes.
#include "fuzz.hpp"

#include <hocket/communicator/call_log.hpp>
#include <hocket/communicator/control.hpp>
#include <hocket/engine/failure_diagnosis.hpp>
#include <hocket/group/impl/shrink.ipp>
#include <hocket/transport/concept.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace {

using fuzz::require;
namespace detail = hocket::detail;
namespace transport = hocket::transport;

constexpr int ranks = 4;
constexpr int own_rank = 2;

bool is_peer(int rank) { return rank >= 0 && rank < ranks && rank != own_rank; }

/// Endpoints that have received the messages of peers, and receive no more.
class mailbox {
 public:
  explicit mailbox(std::deque<transport::control_message> mail) : mail_(std::move(mail)) {}

  bool has_control_message() const noexcept { return !mail_.empty(); }
  bool fetch(transport::control_message& heard) {
    if (mail_.empty()) return false;
    heard = std::move(mail_.front());
    mail_.pop_front();
    return true;
  }
  void post(int peer, std::span<const std::byte> words) {
    require(is_peer(peer), "messages are sent only to peers");
    require(words.size() <= transport::control_message::most_bytes, "a message has at most most_bytes");
    require(detail::decode(words, ranks).has_value(), "a message that is posted can be decoded");
  }
  bool posted() const noexcept { return true; }
  bool progress() const noexcept { return false; }
  bool gone(int) const noexcept { return true; }
  void discard() const noexcept {}

 private:
  std::deque<transport::control_message> mail_;
};

/// The part of a communicator's state that functions need to read control messages.
class rank_state {
 public:
  rank_state(std::deque<transport::control_message> mail, unsigned calls)
      : endpoints_(std::move(mail)), last_sequence_(calls) {
    for (unsigned i = 1; i <= calls; ++i) {
      detail::call_record made;
      made.sequence = i;
      made.operations = 1;
      made.signature = 1;
      made.history = i;
      made.operation = "barrier";
      calls_.add(made);
    }
  }

  int rank() const noexcept { return own_rank; }
  int size() const noexcept { return ranks; }
  mailbox& endpoints() noexcept { return endpoints_; }
  const detail::call_log& calls() const noexcept { return calls_; }
  std::uint32_t last_sequence() const noexcept { return last_sequence_; }
  std::vector<detail::open_inquiry>& open_inquiries() noexcept { return open_inquiries_; }
  detail::vote_history& votes() noexcept { return votes_; }
  bool has_windows() const noexcept { return true; }
  bool aborted() const noexcept { return false; }
  hocket::failure consume_abort() const { return {}; }
  bool revoked() const noexcept { return revoked_; }
  void accept_revocation(const detail::revocation& told) {
    require(fuzz::is_known(told.code), "a revocation has a code of hocket::errc");
    revoked_ = true;
  }

 private:
  mailbox endpoints_;
  detail::call_log calls_;
  std::uint32_t last_sequence_;
  std::vector<detail::open_inquiry> open_inquiries_;
  detail::vote_history votes_;
  bool revoked_ = false;
};

void read_in_a_call(rank_state state) {
  const auto locate = [] { return detail::waiting_call{"barrier", {}, 1, 0}; };
  const auto heard = [](int peer, const detail::answer& said) {
    require(is_peer(peer), "only peers answer");
    require(said.awaited == -1 || (said.awaited >= 0 && said.awaited < ranks), "the awaited rank is valid or -1");
  };
  const hocket::outcome found = detail::poll_control_messages(state, locate, heard);
  if (found.failed()) {
    require(found.code() == hocket::errc::mismatch, "calls that differ cause a mismatch");
    require(is_peer(found.cause().context.peer), "a mismatch names a peer");
  } else {
    require(state.revoked() || !state.endpoints().has_control_message(), "all messages are read");
  }
}

void vote(rank_state state) {
  fuzz::may_raise(ranks, [&] {
    detail::survivor_consensus<rank_state> voters(state, hocket::deadline(), {"shrink", {}, std::chrono::seconds(1)});
    const detail::survivor_set own{3, std::vector<bool>(ranks)};
    const auto all = voters.gather(0, own.text());
    require(all.size() == ranks, "each rank has an entry for its vote");
    require(all[own_rank] == own.text(), "a rank receives its own vote");
    detail::survivor_set sum = own;
    for (const auto& each : all) {
      if (each) sum.add(detail::survivor_set::parse(*each, ranks));
    }
    require(sum.context >= 3 && sum.context <= transport::contexts::most, "the sum of votes has a valid context");
    require(sum.lost.size() == ranks, "the sum of votes states for each rank whether it is lost");
    voters.conclude_in(1, sum.text());
    const std::string agreed = voters.agree(1, sum.text());
    const auto proposed = [&](const auto& each) { return each.second.number == 1 && each.second.content == agreed; };
    require(agreed == sum.text() || std::ranges::any_of(state.votes().received, proposed),
            "the ranks agree on a vote that one of them has proposed");
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const unsigned calls = in.byte() % 64;
  std::deque<transport::control_message> mail;
  while (!in.empty()) {
    // A transport reports the sender correctly, and drops messages without a sender.
    const int sender = static_cast<int>(in.byte() % ranks);
    const auto bytes = in.piece(in.byte());
    if (is_peer(sender)) mail.push_back({sender, {bytes.begin(), bytes.end()}});
  }
  read_in_a_call({mail, calls});
  // The last vote of each peer is for a later round, so that this rank does not wait for missing votes.
  for (int peer = 0; peer < ranks; ++peer) {
    if (is_peer(peer))
      mail.push_back({peer, detail::encode(detail::vote{~std::uint32_t{0}, ~std::uint32_t{0}, "later"})});
  }
  vote({mail, calls});
  return 0;
}
