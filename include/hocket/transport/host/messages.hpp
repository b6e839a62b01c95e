// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Messages between the ranks of a communicator that share memory: all ranks are processes of one host.
///
/// Short messages go through the receiver's ring: see transport/host/message_ring.hpp. A long message is announced
/// there, and once a receive matches it, its receiver uses the first of these ways that is possible:
/// it reads the bytes where they are, if the sender's buffer is in memory that both map; it has the kernel copy them; or
/// the sender writes slices into the ring, which both work on at the same time. Of slices, the first ones follow the
/// announcement without being asked for, and the others come once the receiver has granted them.
///
/// Messages that arrive before their receive are kept in the order of their arrival. Not thread-safe.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/process_memory.hpp>
#include <hocket/transport/concept.hpp>
#include <hocket/transport/host/block_stack.hpp>
#include <hocket/transport/host/message_ring.hpp>
#include <hocket/transport/host/sleepers.hpp>
#include <hocket/transport/spare_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <sys/types.h>

HOCKET_BEGIN_NAMESPACE
namespace host {

/// What an announcement reports about a long message.
struct long_message_details {
  std::uint64_t address = 0;  ///< in the sender's address space
  std::uint64_t handle = 0;   ///< of memory that the receiver maps; 0: none
  std::uint32_t number = 0;   ///< among the long messages from the sender to the receiver
  std::uint32_t unasked = 0;  ///< number of bytes that the sender writes without being asked
};
static_assert(sizeof(long_message_details) <= ring_record::short_bytes);

/// Long messages between two ranks that are not complete, found by their numbers in constant time.
template <class Message>
class numbered_messages {
 public:
  explicit numbered_messages(std::pmr::memory_resource& memory) : messages_(&memory) {}

  /// Adds a message and returns its number.
  std::uint32_t add(Message* one) {
    messages_.push_back(one);
    return first_ + static_cast<std::uint32_t>(messages_.size()) - 1;
  }
  /// Returns null if there is none.
  Message* find(std::uint32_t number) const noexcept {
    const std::uint32_t distance = number - first_;
    return distance < messages_.size() ? messages_[distance] : nullptr;
  }
  void remove(std::uint32_t number) noexcept {
    const std::uint32_t distance = number - first_;
    if (distance >= messages_.size()) return;
    messages_[distance] = nullptr;
    for (; !messages_.empty() && messages_.front() == nullptr; ++first_) messages_.pop_front();
  }
  bool empty() const noexcept { return messages_.empty(); }

 private:
  std::pmr::deque<Message*> messages_;
  std::uint32_t first_ = 1;
};

class messages {
  struct long_send;
  struct long_receive;
  using slices = std::pmr::deque<std::pmr::vector<std::byte>>;  ///< that came before they could be received

  struct peer_rings {
    explicit peer_rings(std::pmr::memory_resource& memory)
        : sends(memory), writing(&memory), replies(&memory), receiving_slices(&memory), early(&memory),
          early_slices(&memory) {}
    peer_rings(const peer_rings&) = delete;
    peer_rings& operator=(const peer_rings&) = delete;

    int rank = 0;
    block_stack blocks;
    ring_writer out;
    ring_reader in;
    pid_t process = 0;
    bool is_self = false;
    numbered_messages<long_send> sends;
    std::size_t unsent = 0;                                          ///< number of `sends` with bytes that are not sent
    std::size_t unasked_bytes = 0;                                   ///< written without a grant since the last grant
    std::size_t unanswered = 0;                                      ///< of these, number that need the peer's reply
    std::pmr::deque<long_send*> writing;                             ///< whose slices this rank writes, one by one
    unsigned useless_polls = 0;                                      ///< that found no room or no reply, in sequence
    std::pmr::deque<std::pair<record_kind, std::uint32_t>> replies;  ///< for which there was no room
    std::pmr::unordered_map<std::uint32_t, long_receive*> receiving_slices;  ///< long messages whose slices come
    /// Messages without a receive, by channel and tag.
    struct unexpected {
      record_kind kind;
      std::uint32_t signature;
      std::uint64_t bytes;                  ///< of the message
      std::pmr::vector<std::byte> payload;  ///< of the record
    };
    std::pmr::unordered_map<std::uint64_t, std::pmr::deque<unexpected>> early;
    std::pmr::unordered_map<std::uint32_t, slices> early_slices;  ///< of `early` announcements, by number
  };

  /// A long message that this rank sends.
  struct long_send {
    long_send(messages& sender, peer_rings& to, std::span<const std::byte> data, std::size_t without_grant)
        : owner(sender), with(to), rest(data), may_write(without_grant) {
      ++owner.unsent_;
      ++with.unsent;
      if (!may_write_all()) ++with.unanswered;
    }
    long_send(const long_send&) = delete;
    long_send& operator=(const long_send&) = delete;
    ~long_send() {
      with.sends.remove(number);
      if (rest.empty()) return;
      std::erase(with.writing, this);
      answer();
      take(rest.size());
    }
    bool may_write_all() const noexcept { return may_write >= rest.size(); }
    /// Records that the receiver has granted or finished the message.
    void answer() noexcept {
      if (may_write_all()) return;
      may_write = rest.size();
      --with.unanswered;
    }
    void take(std::size_t bytes) noexcept {
      rest = rest.subspan(bytes);
      may_write -= bytes;
      if (!rest.empty()) return;
      --owner.unsent_;
      --with.unsent;
    }

    messages& owner;
    peer_rings& with;
    std::span<const std::byte> rest;  ///< bytes that are not sent; at first not empty
    std::size_t may_write;            ///< number of bytes, of `rest`, that may be written now
    std::uint32_t number = 0;
  };

  /// A long message that this rank receives.
  struct long_receive {
    enum class way : std::uint8_t { mapped, by_kernel, in_slices };

    long_receive(peer_rings& from, const long_message_details& announced, std::pmr::memory_resource& memory)
        : with(from), details(announced), how(announced.handle != 0 || from.is_self ? way::mapped
                                              : from.process != 0                   ? way::by_kernel
                                                                                    : way::in_slices),
          early(&memory) {}
    long_receive(const long_receive&) = delete;
    long_receive& operator=(const long_receive&) = delete;
    ~long_receive() {
      if (how == way::in_slices) with.receiving_slices.erase(details.number);
    }

    peer_rings& with;
    const long_message_details details;
    way how;
    bool asked = false;  ///< for slices
    slices early;        ///< that came while another message was received
  };

 public:
  /// A rank of the communicator.
  struct member {
    std::byte* memory = nullptr;  ///< its `bytes_for` zeroed bytes, aligned to a cache line
    pid_t process = 0;            ///< 0: its private memory is not read
  };

  static constexpr std::size_t bytes_for(std::size_t ranks, ring_layout rings) noexcept {
    return sleepers::bytes_per_rank + ranks * (sizeof(ring_credit) + rings.bytes());
  }

  class sending {
    friend messages;
    transport::spare_memory<long_send>::pointer message_;
  };
  class receiving {
   public:
    /// Returns the number of bytes in the parts that have been taken.
    std::size_t received() const noexcept { return received_; }

   private:
    friend messages;
    enum class source : std::uint8_t { none, ring, stored, announced };
    source from_ = source::none;
    std::size_t received_ = 0;                           ///< bytes of earlier parts
    std::size_t part_ = 0;                               ///< bytes of the current part
    std::optional<std::pmr::vector<std::byte>> stored_;  ///< a message that came before its receive
    transport::spare_memory<long_receive>::pointer message_;
  };

  messages(const std::vector<member>& members, int rank, ring_layout rings)
      : longest_(rings.longest()), longest_eager_(longest_), most_unasked_(rings.blocks.count / 4 * longest_) {
    const std::size_t ranks = members.size();
    // Where the kernel copies, two copies through the ring pay only for messages of a few pages.
    constexpr std::size_t few_pages = 8192;
    if (members.front().process != 0) {
      longest_eager_ = std::min(longest_eager_, few_pages);
      most_unasked_ = 0;
    }
    const auto credit = [&](int sender, int receiver) {
      return reinterpret_cast<ring_credit*>(members[index(sender)].memory + sleepers::bytes_per_rank) + receiver;
    };
    const auto ring = [&](int receiver, int sender) {
      return reinterpret_cast<std::byte*>(credit(receiver, static_cast<int>(ranks))) + index(sender) * rings.bytes();
    };
    std::vector<std::byte*> words;
    for (const member& each : members) words.push_back(each.memory);
    sleepers_ = sleepers(words, rank);
    for (std::size_t i = 0; i < ranks; ++i) peers_.emplace_back(memory_);
    for (int peer = 0; peer < static_cast<int>(ranks); ++peer) {
      peer_rings& with = at(peer);
      const auto blocks = [&](int receiver, int sender) {
        return ring(receiver, sender) + ring_layout::records * sizeof(ring_record);
      };
      const int low = std::min(peer, rank), high = std::max(peer, rank);
      with.blocks = block_stack(blocks(low, high), blocks(high, low), rank == low, &credit(rank, peer)->blocks,
                                &credit(peer, rank)->blocks, rings.blocks);
      with.out = ring_writer(ring(peer, rank), credit(rank, peer), with.blocks);
      with.in = ring_reader(ring(rank, peer), credit(peer, rank), with.blocks);
      with.process = members[index(peer)].process;
      with.is_self = peer == rank;
      with.rank = peer;
    }
  }
  messages(const messages&) = delete;
  messages& operator=(const messages&) = delete;

  /// As `try_send` of an endpoint group. `handle()`: that of `data` in memory that the peer maps, or 0.
  bool try_send(sending& state, int peer, transport::message_id id, const void* data, std::size_t bytes, auto handle,
                failure& fail) {
    peer_rings& with = at(peer);
    const std::span<const std::byte> payload(static_cast<const std::byte*>(data), bytes);
    if (bytes <= longest_eager_) {
      const bool is_sent = send_eagerly(peer, id, data, bytes);
      if (!is_sent) make_room(with);
      return is_sent;
    }
    if (!with.out.has_room(sizeof(long_message_details), spare_for_replies)) return false;
    const std::uint64_t mapped = handle();
    const bool may_begin = mapped == 0 && !with.is_self && with.unasked_bytes < most_stored_bytes;
    const std::size_t unasked = may_begin ? std::min(bytes, most_unasked_) : 0;
    with.unasked_bytes += unasked;
    state.message_ = sends_.make(*this, with, payload, unasked);
    if (state.message_ == nullptr) {
      fail = make_failure(errc::out_of_memory, "can't allocate memory for a message", {.peer = peer});
      return false;
    }
    const std::uint32_t number = state.message_->number = with.sends.add(state.message_.get());
    const long_message_details details{reinterpret_cast<std::uintptr_t>(data), mapped, number,
                                       static_cast<std::uint32_t>(unasked)};
    with.out.write(record_kind::announcement, id.channel, id.sequence, id.signature,
                   std::as_bytes(std::span(&details, 1)), bytes);
    sleepers_.wake(peer);
    if (unasked > 0) {
      with.writing.push_back(state.message_.get());
      write_slices(with);
    }
    return true;
  }

  /// By which ranks of the communicator sleep and wake each other.
  const sleepers& sleep() const noexcept { return sleepers_; }

  std::size_t eager_bytes() const noexcept { return longest_eager_; }

  bool send_eagerly(int peer, transport::message_id id, const void* data, std::size_t bytes) noexcept {
    peer_rings& with = at(peer);
    if (!with.out.has_room(bytes, spare_for_replies)) return false;
    with.out.write(record_kind::message, id.channel, id.sequence, id.signature,
                   {static_cast<const std::byte*>(data), bytes}, bytes);
    sleepers_.wake(peer);
    return true;
  }

  template <class Take>
  transport::eager_receive receive_eagerly(int peer, transport::message_id id, std::size_t bytes, Take take) {
    using transport::eager_receive;
    peer_rings& with = at(peer);
    if (!with.replies.empty()) [[unlikely]]
      flush_replies(with);
    if (!with.early.empty() && with.early.contains(key(id.channel, id.sequence))) [[unlikely]]
      return eager_receive::needs_general_receive;
    const ring_record* const head = with.in.next();
    if (head == nullptr) return eager_receive::not_arrived;
    const bool is_wanted = head->kind() == record_kind::message && head->channel() == id.channel &&
                           head->tag == id.sequence && head->signature == id.signature && head->bytes == bytes;
    if (!is_wanted) return eager_receive::needs_general_receive;
    take(with.in.payload(*head, bytes));
    with.useless_polls = 0;
    take_head(with, bytes);
    return eager_receive::taken;
  }

  bool drained(sending& state) {
    if (state.message_ == nullptr) return true;
    if (!state.message_->rest.empty()) advance_sends(state.message_->with);
    if (!state.message_->rest.empty()) return false;
    state.message_.reset();
    return true;
  }

  /// Makes the next `progress` store messages that arrive before a reply at once. Call it before a sleep.
  void store_without_delay() noexcept {
    for (peer_rings& each : peers_) each.useless_polls = polls_before_storing;
  }

  /// Continues the long messages that this rank sends, and sends replies for which there was no room.
  void progress() {
    if (unsent_ > 0) {
      for (peer_rings& each : peers_) {
        if (each.unsent > 0) advance_sends(each);
      }
    }
    if (!has_replies_) [[likely]]
      return;
    has_replies_ = false;
    for (peer_rings& each : peers_) {
      flush_replies(each);
      has_replies_ = has_replies_ || !each.replies.empty();
    }
  }

  /// Returns the next bytes of a message of `bytes` bytes, and their number in `part`; null if none have arrived. They
  /// are in `buffer` only if that is returned, else in place; then they are valid until `finish_part`, which the caller
  /// must call before it uses this object for anything else. Until the message is complete, pass the same arguments
  /// except for `buffer`.
  /// @param buffer where to store the part if it must be stored
  /// @param room the number of bytes at `buffer`, which a part then does not exceed
  const std::byte* next_part(receiving& state, int peer, transport::message_id id, std::byte* buffer, std::size_t room,
                             std::size_t bytes, std::size_t& part, failure& fail, auto resolve) {
    if (state.from_ == receiving::source::none && !match(state, peer, id, bytes, fail)) return nullptr;
    peer_rings& with = at(peer);
    const std::byte* found = nullptr;
    state.part_ = bytes - state.received_;
    switch (state.from_) {
      case receiving::source::none: break;
      case receiving::source::ring: found = with.in.payload(*with.in.next(), bytes); break;
      case receiving::source::stored: found = state.stored_->data(); break;
      case receiving::source::announced: found = next_part_of_long(state, peer, buffer, room, bytes, resolve); break;
    }
    part = state.part_;
    return found;
  }

  /// Takes the part that `next_part` returned. Returns whether it was the last.
  bool finish_part(receiving& state, int peer, std::size_t bytes) {
    peer_rings& with = at(peer);
    with.useless_polls = 0;
    state.received_ += state.part_;
    const bool is_last = state.received_ == bytes;
    if (state.from_ == receiving::source::ring) take_head(with, bytes);
    if (state.from_ == receiving::source::announced) finish_part_of_long(*state.message_, state.part_, is_last);
    if (!is_last) return false;
    state = {};
    return true;
  }

 private:
  /// Records of a ring that messages leave free, so that a rank which leaves the communicator has replied to the peer
  /// whose long messages it has received, though that peer may have read nothing for long.
  static constexpr std::uint32_t spare_for_replies = 8;
  /// A rank that sends so many bytes without a grant then asks for one, because its peer may have to store them.
  static constexpr std::size_t most_stored_bytes = std::size_t{4} << 20;
  static constexpr std::uint32_t most_slices_ahead = 8;  ///< of what this rank has read, in an exchange
  /// After so many polls, this rank stores messages which it then has to copy once more.
  static constexpr unsigned polls_before_storing = 64;

  static std::size_t index(int peer) noexcept { return static_cast<std::size_t>(peer); }
  peer_rings& at(int peer) noexcept { return peers_[index(peer)]; }

  static std::uint64_t key(std::uint32_t channel, std::uint32_t tag) noexcept {
    return std::uint64_t{channel} << 32 | tag;
  }

  static std::size_t payload_bytes(const ring_record& record) noexcept {
    switch (record.kind()) {
      case record_kind::message:
      case record_kind::slice: return record.bytes;
      case record_kind::announcement: return sizeof(long_message_details);
      case record_kind::grant:
      case record_kind::finished: break;
    }
    return 0;
  }

  void take_head(peer_rings& with, std::size_t bytes) noexcept {
    if (with.in.take(bytes)) sleepers_.wake(with.rank);
  }

  // ── Sending ──────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Reads the peer's replies while one may come, and writes slices. Keeps messages that arrive before replies; long ones
  /// only if this rank does not receive them soon, as it does in an exchange.
  void advance_sends(peer_rings& with) {
    if (!with.replies.empty()) [[unlikely]]
      flush_replies(with);
    while (with.unanswered > 0) {
      const ring_record* const head = with.in.next();
      if (head == nullptr) break;
      const bool is_long = head->kind() == record_kind::announcement || head->kind() == record_kind::slice;
      if (is_long && ++with.useless_polls < polls_before_storing) break;
      keep(with, *head);
    }
    write_slices(with);
  }

  /// Writes slices until there is no room. In an exchange, a rank that is ahead first reads, while both are in the cache.
  void write_slices(peer_rings& with) {
    while (!with.writing.empty()) {
      long_send& message = *with.writing.front();
      const std::size_t bytes = std::min(message.may_write, longest_);
      if (!with.receiving_slices.empty() && !with.blocks.lacks_at_most(most_slices_ahead)) return;
      if (!with.out.has_room(bytes, spare_for_replies)) return make_room(with);
      with.out.write(record_kind::slice, 0, message.number, 0, message.rest.first(bytes), bytes);
      message.take(bytes);
      if (message.may_write == 0) with.writing.pop_front();
      sleepers_.wake(with.rank);
    }
  }

  /// The peer may have sent all blocks in messages that this rank does not receive yet. If that lasts, stores these.
  void make_room(peer_rings& with) {
    if (++with.useless_polls < polls_before_storing) return;
    while (with.blocks.size() == 0) {
      const ring_record* const head = with.in.next();
      if (head == nullptr) return;
      keep(with, *head);
    }
  }

  /// Sends a record without payload as soon as there is room.
  void reply(peer_rings& with, record_kind what, std::uint32_t number) {
    with.replies.emplace_back(what, number);
    flush_replies(with);
    has_replies_ = has_replies_ || !with.replies.empty();
  }
  void flush_replies(peer_rings& with) noexcept {
    for (; !with.replies.empty() && with.out.has_room(0, 0); with.replies.pop_front()) {
      with.out.write(with.replies.front().first, 0, with.replies.front().second, 0, {}, 0);
      sleepers_.wake(with.rank);
    }
  }

  // ── Receiving ────────────────────────────────────────────────────────────────────────────────────────────────────

  /// Takes a record that is not for the caller.
  void keep(peer_rings& with, const ring_record& head) {
    const std::size_t bytes = payload_bytes(head);
    const std::byte* const payload = with.in.payload(head, bytes);
    switch (head.kind()) {
      case record_kind::announcement:
        if (const long_message_details details = details_of(head); details.unasked > 0)
          with.early_slices.try_emplace(details.number);
        [[fallthrough]];
      case record_kind::message:
        with.early[key(head.channel(), head.tag)].push_back(
            {head.kind(), head.signature, head.bytes, std::pmr::vector<std::byte>(payload, payload + bytes, &memory_)});
        break;
      case record_kind::slice:
        if (const auto found = with.receiving_slices.find(head.tag); found != with.receiving_slices.end()) {
          found->second->early.emplace_back(payload, payload + bytes);
        } else if (const auto early = with.early_slices.find(head.tag); early != with.early_slices.end()) {
          early->second.emplace_back(payload, payload + bytes);
        }
        break;
      case record_kind::grant:
        with.unasked_bytes = 0;
        if (long_send* const message = with.sends.find(head.tag); message != nullptr) {
          if (message->may_write == 0) with.writing.push_back(message);
          message->answer();
        }
        break;
      case record_kind::finished:
        if (long_send* const message = with.sends.find(head.tag); message != nullptr) {
          std::erase(with.writing, message);
          message->answer();
          message->take(message->rest.size());
        }
        break;
    }
    take_head(with, bytes);
  }

  /// Finds the message that `id` receives. Returns false if it has not arrived or does not fit.
  bool match(receiving& state, int peer, transport::message_id id, std::size_t bytes, failure& fail) {
    peer_rings& with = at(peer);
    if (!with.replies.empty()) [[unlikely]]
      flush_replies(with);
    if (!with.early.empty()) [[unlikely]] {
      if (const auto found = with.early.find(key(id.channel, id.sequence)); found != with.early.end()) {
        return match_early(state, found, peer, id, bytes, fail);
      }
    }
    for (;;) {
      const ring_record* const head = with.in.next();
      if (head == nullptr) return false;
      const record_kind kind = head->kind();
      const bool is_message = kind == record_kind::message || kind == record_kind::announcement;
      if (!is_message || head->tag != id.sequence || head->channel() != id.channel) {
        keep(with, *head);
        continue;
      }
      if (!fits(peer, id, head->bytes, head->signature, bytes, fail)) return false;
      if (kind == record_kind::message) {
        state.from_ = receiving::source::ring;
        return true;
      }
      if (!announce(state, with, details_of(*head), peer, fail)) return false;
      take_head(with, sizeof(long_message_details));
      return true;
    }
  }

  bool match_early(receiving& state, auto found, int peer, transport::message_id id, std::size_t bytes, failure& fail) {
    peer_rings& with = at(peer);
    auto& first = found->second.front();
    if (!fits(peer, id, first.bytes, first.signature, bytes, fail)) return false;
    if (first.kind == record_kind::message) {
      state.from_ = receiving::source::stored;
      state.stored_.emplace(std::move(first.payload));
      state.stored_->reserve(1);  // so that an empty message has an address, too
    } else {
      long_message_details details;
      std::memcpy(&details, first.payload.data(), sizeof details);
      if (!announce(state, with, details, peer, fail)) return false;
      if (const auto arrived = with.early_slices.find(details.number); arrived != with.early_slices.end()) {
        state.message_->early = std::move(arrived->second);
        with.early_slices.erase(arrived);
      }
    }
    found->second.pop_front();
    if (found->second.empty()) with.early.erase(found);
    return true;
  }

  bool announce(receiving& state, peer_rings& with, const long_message_details& details, int peer, failure& fail) {
    state.message_ = receives_.make(with, details, memory_);
    if (state.message_ == nullptr) {
      fail = make_failure(errc::out_of_memory, "can't allocate memory for a message", {.peer = peer});
      return false;
    }
    if (details.unasked > 0) with.receiving_slices.emplace(details.number, state.message_.get());
    state.from_ = receiving::source::announced;
    return true;
  }

  static long_message_details details_of(const ring_record& announcement) noexcept {
    long_message_details details;
    std::memcpy(&details, announcement.content, sizeof details);
    return details;
  }

  static bool fits(int peer, transport::message_id id, std::uint64_t sent, std::uint32_t signature, std::size_t bytes,
                   failure& fail) {
    const bool same_call = transport::fits(signature, id);
    if (sent == bytes && same_call) [[likely]]
      return true;
    fail = sent == bytes ? transport::type_mismatch(peer, id)
                         : transport::wrong_length(std::to_string(sent), sent > bytes, peer, id, bytes, same_call);
    return false;
  }

  const std::byte* next_part_of_long(receiving& state, int peer, std::byte* buffer, std::size_t room, std::size_t total,
                                     auto resolve) {
    long_receive& message = *state.message_;
    peer_rings& with = message.with;
    switch (message.how) {
      case long_receive::way::mapped: {
        state.part_ = std::min(state.part_, room);
        const auto* const begin = with.is_self ? reinterpret_cast<const std::byte*>(message.details.address)
                                               : resolve(peer, message.details.handle);
        return begin + state.received_;
      }
      case long_receive::way::by_kernel: {
        state.part_ = std::min(state.part_, room);
        const std::uint64_t from = message.details.address + state.received_;
        const auto read = platform::read_process_memory(with.process, from, buffer, state.part_);
        if (read == platform::process_read::done) return buffer;
        if (state.received_ > 0) return nullptr;  // its process or its call has ended, which the caller finds
        with.process = 0;
        message.how = long_receive::way::in_slices;
        [[fallthrough]];
      }
      case long_receive::way::in_slices: return next_slice(state, message, total);
    }
    return nullptr;
  }

  const std::byte* next_slice(receiving& state, long_receive& message, std::size_t total) {
    peer_rings& with = message.with;
    if (!message.asked) {
      message.asked = true;
      if (message.details.unasked == 0) with.receiving_slices.emplace(message.details.number, &message);
      if (message.details.unasked < total) reply(with, record_kind::grant, message.details.number);
    }
    if (!with.replies.empty()) [[unlikely]]
      flush_replies(with);
    if (!message.early.empty()) [[unlikely]] {
      state.part_ = message.early.front().size();
      return message.early.front().data();
    }
    while (const ring_record* const head = with.in.next()) {
      if (head->kind() == record_kind::slice && head->tag == message.details.number) {
        state.part_ = head->bytes;
        return with.in.payload(*head, head->bytes);
      }
      keep(with, *head);
    }
    return nullptr;
  }

  void finish_part_of_long(long_receive& message, std::size_t part, bool is_last) {
    peer_rings& with = message.with;
    if (message.how != long_receive::way::in_slices) {
      if (is_last) reply(with, record_kind::finished, message.details.number);
    } else if (!message.early.empty()) {
      message.early.pop_front();
    } else {
      take_head(with, part);
    }
  }

  std::size_t longest_;                            ///< of a record's payload
  std::size_t longest_eager_;                      ///< of a message that is not announced
  std::size_t most_unasked_;                       ///< bytes in slices that come before they are granted
  std::pmr::unsynchronized_pool_resource memory_;  ///< so that a program's second step allocates nothing
  std::deque<peer_rings> peers_;
  bool has_replies_ = false;  ///< some peer's ring had no room for a reply
  sleepers sleepers_;
  std::size_t unsent_ = 0;  ///< number of long messages with bytes that are not sent
  transport::spare_memory<long_send> sends_;
  transport::spare_memory<long_receive> receives_;
};

}  // namespace host
HOCKET_END_NAMESPACE
