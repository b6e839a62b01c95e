// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages between ranks that share memory: each arrives once, whole and in the order of its tag, by every way, also
// while other messages wait. The ranks are objects of one process; the kernel copies from its own memory.
#include "support/catch.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/transport/host/message_ring.hpp>
#include <hocket/transport/host/messages.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace host = hocket::host;
using hocket::transport::message_id;

namespace {

enum class way { slices, by_kernel, mapped };
std::string name_of(way how) {
  return how == way::slices ? "slices" : how == way::by_kernel ? "copies by the kernel" : "mapped memory";
}

/// The ranks of a communicator, and the memory that they share.
class ranks {
 public:
  explicit ranks(int count, way how = way::slices, host::ring_layout rings = {}) : how_(how) {
    const std::size_t bytes = host::messages::bytes_for(static_cast<std::size_t>(count), rings);
    std::vector<host::messages::member> members;
    for (int rank = 0; rank < count; ++rank) {
      memory_.emplace_back(static_cast<std::byte*>(::operator new(bytes, alignment)));
      std::memset(memory_.back().get(), 0, bytes);
      members.push_back({memory_.back().get(), how == way::by_kernel ? ::getpid() : 0});
    }
    for (int rank = 0; rank < count; ++rank) ranks_.push_back(std::make_unique<host::messages>(members, rank, rings));
  }

  ~ranks() { CHECK(odd_parts_ == 0); }

  host::messages& at(int rank) { return *ranks_[static_cast<std::size_t>(rank)]; }

  bool send(host::messages::sending& state, int from, int to, message_id id, std::span<const std::byte> data) {
    return send(state, from, to, id, data, how_);
  }
  bool send(host::messages::sending& state, int from, int to, message_id id, std::span<const std::byte> data, way how) {
    hocket::failure fail;
    const auto handle = [&] { return how == way::mapped ? reinterpret_cast<std::uintptr_t>(data.data()) : 0; };
    const bool sent = at(from).try_send(state, to, id, data.data(), data.size(), handle, fail);
    REQUIRE(!fail);
    return sent;
  }

  /// Receives what has arrived of a message. Returns whether it is complete.
  bool receive(host::messages::receiving& state, int to, int from, message_id id, std::span<std::byte> buffer,
               hocket::failure& fail, std::size_t room = 4096) {
    for (;;) {
      std::byte* const place = buffer.data() + state.received();
      std::size_t part = 0;
      const std::byte* const found =
          at(to).next_part(state, from, id, place, room, buffer.size(), part, fail,
                           [](int, std::uint64_t handle) { return reinterpret_cast<const std::byte*>(handle); });
      if (found == nullptr) return false;
      const bool is_last = state.received() + part == buffer.size();
      if (!is_last && part % host::ring_layout::part_multiple != 0) ++odd_parts_;
      if (found != place && part > 0) std::memcpy(place, found, part);
      if (at(to).finish_part(state, from, buffer.size())) return true;
    }
  }

 private:
  static constexpr std::align_val_t alignment{64};
  struct freeing {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };

  const way how_;
  std::atomic<int> odd_parts_{0};  ///< that would divide elements
  std::vector<std::unique_ptr<std::byte, freeing>> memory_;
  std::vector<std::unique_ptr<host::messages>> ranks_;
};

std::vector<std::byte> content(std::size_t size, unsigned seed) {
  std::vector<std::byte> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<std::byte>(i * 7 + seed);
  return result;
}

/// A message under way.
struct message {
  message(message_id named, std::size_t size, unsigned seed) : id(named), sent(content(size, seed)), received(size) {}

  message_id id;
  std::vector<std::byte> sent;
  std::vector<std::byte> received;
  host::messages::sending sending;
  host::messages::receiving receiving;
  bool begun = false;
  bool drained = false;
  bool arrived = false;

  /// Tries to continue both sides.
  void advance(ranks& all, int from, int to, bool receives = true) {
    hocket::failure fail;
    if (!begun) begun = all.send(sending, from, to, id, sent);
    if (begun && !drained) drained = all.at(from).drained(sending);
    if (receives && !arrived) arrived = all.receive(receiving, to, from, id, received, fail);
    CHECK(!fail);
  }
  bool over() const { return drained && arrived; }
};

const std::vector<std::size_t> sizes{0,    1,     39,    40,    41,    56,         64,      1000,      4095,
                                     4096, 16383, 16384, 16385, 65536, (1U << 17), 1000001, (1U << 21)};

}  // namespace

TEST_CASE("a message of any size arrives unchanged by every way, and from a rank to itself") {
  const way how = GENERATE(way::slices, way::by_kernel, way::mapped);
  const int to = GENERATE(0, 1);
  INFO(name_of(how));
  ranks all(2, how);
  std::uint32_t tag = 0;
  for (const std::size_t size : sizes) {
    INFO(size);
    message one({++tag, 1, 77}, size, tag);
    for (int turn = 0; turn < 10'000 && !one.over(); ++turn) one.advance(all, 0, to);
    REQUIRE(one.over());
    CHECK(one.received == one.sent);
  }
}

TEST_CASE("messages are received in any order of their tags, and in their own order for one tag") {
  const way how = GENERATE(way::slices, way::by_kernel, way::mapped);
  INFO(name_of(how));
  std::minstd_rand engine(5);
  const auto random = [&] { return static_cast<unsigned>(engine()) >> 8; };
  ranks all(2, how);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::unique_ptr<message>> messages;
    for (unsigned i = 0; i < 40; ++i) {
      const std::size_t size = sizes[random() % (sizes.size() - 2)];  // the longest ones take long
      messages.push_back(std::make_unique<message>(message_id{random() % 5, random() % 3, 1}, size, random()));
    }
    std::vector<std::size_t> order(messages.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return messages[a]->id.sequence * 5 + messages[a]->id.channel * 3 <
             messages[b]->id.sequence * 5 + messages[b]->id.channel * 3;
    });
    std::size_t sent = 0, received = 0;
    for (int turn = 0; turn < 100'000 && received < order.size(); ++turn) {
      // Of one tag, only the oldest message may be sent and received, as calls do.
      while (sent < messages.size() && (messages[sent]->advance(all, 0, 1, false), messages[sent]->begun)) ++sent;
      message& next = *messages[order[received]];
      hocket::failure fail;
      next.arrived = all.receive(next.receiving, 1, 0, next.id, next.received, fail);
      CHECK(!fail);
      if (next.arrived) ++received;
      all.at(0).progress();
    }
    REQUIRE(received == order.size());
    for (const auto& each : messages) {
      each->advance(all, 0, 1);
      CHECK(each->over());
      CHECK(each->received == each->sent);
    }
  }
}

TEST_CASE("two ranks exchange long messages at the same time") {
  const way how = GENERATE(way::slices, way::by_kernel, way::mapped);
  ranks all(3, how, host::ring_layout::for_ranks(5000));
  message right({1, 0, 1}, 300'000, 1), left({1, 0, 1}, 200'001, 2), other({1, 0, 1}, 99'999, 3);
  for (int turn = 0; turn < 100'000 && !(right.over() && left.over() && other.over()); ++turn) {
    right.advance(all, 0, 1);
    left.advance(all, 1, 0);
    other.advance(all, 2, 0);
  }
  CHECK(right.received == right.sent);
  CHECK(left.received == left.sent);
  CHECK(other.received == other.sent);
}

TEST_CASE("a message whose length or signature differs is refused") {
  const way how = GENERATE(way::slices, way::by_kernel);
  for (const std::size_t size : {std::size_t{8}, std::size_t{500}, std::size_t{1'000'000}}) {
    const bool is_early = GENERATE(false, true);
    ranks all(2, how);
    message sent({3, 0, 9}, size, 1);
    sent.advance(all, 0, 1, false);
    hocket::failure fail;
    if (is_early) {  // another receive finds it first
      message before({2, 0, 9}, 8, 1);
      CHECK_FALSE(all.receive(before.receiving, 1, 0, before.id, before.received, fail));
    }
    std::vector<std::byte> longer(size + 4);
    host::messages::receiving state;
    CHECK_FALSE(all.receive(state, 1, 0, {3, 0, 9}, longer, fail));
    CHECK(fail.code == hocket::errc::mismatch);
    fail = {};
    CHECK_FALSE(all.receive(state, 1, 0, {3, 0, 8}, sent.received, fail));
    CHECK(fail.code == hocket::errc::mismatch);
    fail = {};
    CHECK(all.receive(state, 1, 0, {3, 0, 9}, sent.received, fail) == (size <= 4096 || how == way::by_kernel));
  }
}

TEST_CASE("a sender is at most a ring ahead, and continues when the receiver takes messages") {
  ranks all(2);
  std::vector<std::unique_ptr<message>> messages;
  const std::size_t size = GENERATE(std::size_t{8}, std::size_t{1000}, std::size_t{16'384});
  const auto next = [&] {
    const auto number = static_cast<std::uint32_t>(messages.size());
    messages.push_back(std::make_unique<message>(message_id{number, 0, 1}, size, number));
    messages.back()->advance(all, 0, 1, false);
    return messages.back()->begun;
  };
  while (next()) REQUIRE(messages.size() <= host::ring_layout::records);
  CHECK(messages.size() >= 7);
  for (const auto& each : messages) each->advance(all, 0, 1);
  for (const auto& each : messages) {
    CHECK(each->over());
    CHECK(each->received == each->sent);
  }
}

TEST_CASE("a rank continues to send while it leaves messages that have all blocks of the peer") {
  const std::size_t size = GENERATE(std::size_t{500}, std::size_t{16'384}, std::size_t{1'000'000});
  ranks all(2, way::slices, host::ring_layout::for_ranks(5000));  // fewer blocks than records
  std::deque<message> left;
  do {
    left.emplace_back(message_id{static_cast<std::uint32_t>(left.size()), 0, 1}, std::size_t{500}, 7);
    left.back().advance(all, 1, 0, false);
  } while (left.back().begun);
  left.pop_back();
  for (unsigned i = 0; i < 500; ++i) {
    message one({i, 1, 1}, size, i);
    for (int turn = 0; turn < 10'000 && !one.over(); ++turn) one.advance(all, 0, 1);
    REQUIRE(one.over());
    REQUIRE(one.received == one.sent);
    if (size > 500'000 && i == 5) break;
  }
  for (message& each : left) {
    each.advance(all, 1, 0);
    CHECK(each.over());
    CHECK(each.received == each.sent);
  }
}

TEST_CASE("a sender soon finds the reply behind a long message that it does not receive") {
  ranks all(2);
  message left({1, 0, 1}, 2'000'000, 1), sent({2, 0, 1}, 2'000'000, 2);
  left.advance(all, 1, 0, false);
  int turns = 0;
  while (!sent.over() && turns < 10'000) {
    sent.advance(all, 0, 1);
    ++turns;
  }
  CHECK(turns < 300);
  while (!left.over() && turns < 10'000) {
    left.advance(all, 1, 0);
    ++turns;
  }
  CHECK(left.received == left.sent);
}

TEST_CASE("a peer must store few MiB of long messages that it does not receive") {
  ranks all(2);
  std::deque<message> left;
  for (std::uint32_t i = 0; i < 400; ++i) {
    left.emplace_back(message_id{i, 0, 1}, std::size_t{200'000}, i);
    left.back().advance(all, 0, 1, false);
    message other({i, 1, 1}, 8, i);  // makes rank 1 look at what has come
    for (int turn = 0; turn < 1000 && !other.over(); ++turn) other.advance(all, 0, 1);
    REQUIRE(other.over());
  }
  const auto is_written = [&](message& each) { return all.at(0).drained(each.sending); };
  CHECK(std::count_if(left.begin(), left.end(), is_written) <= 25);
  for (message& each : left) {
    for (int turn = 0; turn < 1000 && !each.over(); ++turn) each.advance(all, 0, 1);
    REQUIRE(each.over());
    CHECK(each.received == each.sent);
  }
}

TEST_CASE("long messages that are sent both ways at once arrive, however their ends take turns") {
  const unsigned seed = GENERATE(range(0U, 8U));
  std::mt19937 random(seed);
  ranks all(2);
  for (std::uint32_t i = 0; i < 10; ++i) {
    message there({i, 0, 1}, random() % 3'000'000, i), back({i, 0, 1}, random() % 3'000'000, i + 1);
    for (int turn = 0; turn < 100'000 && !(there.over() && back.over()); ++turn) {
      if (random() % 4 < 1 + seed % 4) there.advance(all, 0, 1, random() % 2 == 0);
      if (random() % 4 < 1 + seed / 4) back.advance(all, 1, 0, random() % 2 == 0);
    }
    REQUIRE((there.over() && back.over()));
    REQUIRE((there.received == there.sent && back.received == back.sent));
  }
}

TEST_CASE("a receiver whose ring to the sender is full of messages still replies to the long message it received") {
  for (const way how : {way::by_kernel, way::mapped}) {
    INFO(name_of(how));
    ranks all(2, how);
    message large({1, 0, 0}, 100'000, 1);
    hocket::failure fail;
    large.advance(all, 0, 1, false);
    int messages = 0;
    const std::vector<std::byte> one(1);
    for (host::messages::sending state; all.send(state, 1, 0, {2, 0, 0}, one); state = {}) ++messages;
    CHECK(messages > 10);
    CHECK(all.receive(large.receiving, 1, 0, large.id, large.received, fail));
    // From here on rank 1 does nothing, as if it had left.
    CHECK(all.at(0).drained(large.sending));
    for (int i = 0; i < messages; ++i) {
      host::messages::receiving state;
      std::vector<std::byte> data(1);
      CHECK(all.receive(state, 0, 1, {2, 0, 0}, data, fail));
    }
  }
}

TEST_CASE("a sender learns that its message was received while another one waits for room") {
  ranks all(2);
  message large({1, 0, 0}, 5'000'000, 1), mapped({2, 0, 0}, 100'000, 2);
  hocket::failure fail;
  CHECK(all.send(large.sending, 0, 1, large.id, large.sent));
  CHECK(all.send(mapped.sending, 0, 1, mapped.id, mapped.sent, way::mapped));
  CHECK(!all.receive(large.receiving, 1, 0, large.id, large.received, fail));  // asks for slices
  CHECK(all.receive(mapped.receiving, 1, 0, mapped.id, mapped.received, fail));
  // From here on rank 1 reads nothing, so the ring of rank 0 is full of slices.
  CHECK(!all.at(0).drained(large.sending));
  CHECK(all.at(0).drained(mapped.sending));
  large.begun = true;
  for (int turn = 0; turn < 1000 && !large.over(); ++turn) large.advance(all, 0, 1);
  CHECK(large.received == large.sent);
}

TEST_CASE("abandoned long messages leave the others alone") {
  const way how = GENERATE(way::slices, way::by_kernel, way::mapped);
  ranks all(2, how);
  message after({2, 0, 1}, 50'000, 2);
  {
    message abandoned({1, 0, 1}, 500'000, 1);
    hocket::failure fail;
    abandoned.advance(all, 0, 1, false);
    std::size_t part = 0;  // the receive begins, and takes the first part if one has come
    std::vector<std::byte> room(4096);
    all.at(1).next_part(abandoned.receiving, 0, abandoned.id, room.data(), room.size(), 500'000, part, fail,
                        [](int, std::uint64_t handle) { return reinterpret_cast<const std::byte*>(handle); });
    abandoned.advance(all, 0, 1, false);
  }
  for (int turn = 0; turn < 10'000 && !after.over(); ++turn) after.advance(all, 0, 1);
  CHECK(after.over());
  CHECK(after.received == after.sent);
}

TEST_CASE("short messages are sent and received without states, between others") {
  ranks all(2);
  const auto seven = content(7, 3);
  std::vector<std::byte> found;
  const auto take = [&](const std::byte* message) { found.assign(message, message + 7); };
  using hocket::transport::eager_receive;
  CHECK(all.at(1).receive_eagerly(0, {1, 0, 5}, 7, take) == eager_receive::not_arrived);
  REQUIRE(all.at(0).send_eagerly(1, {1, 0, 5}, seven.data(), 7));
  CHECK(all.at(1).receive_eagerly(0, {2, 0, 5}, 7, take) == eager_receive::needs_general_receive);
  CHECK(all.at(1).receive_eagerly(0, {1, 1, 5}, 7, take) == eager_receive::needs_general_receive);
  CHECK(all.at(1).receive_eagerly(0, {1, 0, 4}, 7, take) == eager_receive::needs_general_receive);
  CHECK(all.at(1).receive_eagerly(0, {1, 0, 5}, 8, take) == eager_receive::needs_general_receive);
  CHECK(all.at(1).receive_eagerly(0, {1, 0, 5}, 7, take) == eager_receive::taken);
  CHECK(found == seven);
  REQUIRE(all.at(0).send_eagerly(1, {1, 0, 5}, seven.data(), 7));
  message other({9, 0, 5}, 100, 1);
  other.advance(all, 0, 1);  // keeps the first message
  CHECK(all.at(1).receive_eagerly(0, {1, 0, 5}, 7, take) == eager_receive::needs_general_receive);
  REQUIRE(all.at(0).send_eagerly(1, {2, 0, 5}, seven.data(), 7));
  CHECK(all.at(1).receive_eagerly(0, {2, 0, 5}, 7, take) == eager_receive::taken);  // although another one is stored
  hocket::failure fail;
  std::vector<std::byte> room(7);
  host::messages::receiving state;
  CHECK(all.receive(state, 1, 0, {1, 0, 5}, room, fail));
  CHECK(room == seven);
}

TEST_CASE("threads send to each other through rings that both use at the same time") {
  const way how = GENERATE(way::slices, way::by_kernel, way::mapped);
  INFO(name_of(how));
  ranks all(2, how);
  std::atomic<int> wrong{0};
  const auto run = [&](int rank) {
    const int peer = 1 - rank;
    std::minstd_rand engine(11);  // equal on both
    const auto random = [&] { return static_cast<unsigned>(engine()) >> 8; };
    const hocket::deadline last = hocket::deadline::after(std::chrono::seconds(60));
    for (std::uint32_t i = 1; i <= 300; ++i) {
      const std::size_t size = random() % 3 == 0 ? random() % 200'000 : random() % 200;
      const auto sent = content(size, i + static_cast<unsigned>(rank));
      std::vector<std::byte> received(size);
      host::messages::sending sending;
      host::messages::receiving receiving;
      const message_id id{i, 0, 1};
      hocket::failure fail;
      const auto handle = [&] { return how == way::mapped ? reinterpret_cast<std::uintptr_t>(sent.data()) : 0; };
      bool begun = false, arrived = false;
      while (!(begun && arrived && all.at(rank).drained(sending)) && !last.passed()) {
        if (!begun) begun = all.at(rank).try_send(sending, peer, id, sent.data(), size, handle, fail);
        if (!arrived) arrived = all.receive(receiving, rank, peer, id, received, fail, 65536);
        if (fail) ++wrong;
        all.at(rank).progress();
      }
      if (received != content(size, i + static_cast<unsigned>(peer))) ++wrong;
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  CHECK(wrong == 0);
}

TEST_CASE("rings from many ranks take about 8 MiB of each rank's memory") {
  for (const std::size_t ranks : {1U, 2U, 8U, 64U, 100U, 1000U}) {
    const host::ring_layout rings = host::ring_layout::for_ranks(ranks);
    CHECK(host::messages::bytes_for(ranks, rings) <= std::max(std::size_t{9} << 20, ranks * 14'000));
    CHECK(rings.longest() % host::ring_layout::part_multiple == 0);
  }
}

TEST_CASE("a rank that sleeps is woken by what a peer writes, and otherwise wakes up soon") {
  ranks all(2);
  const host::sleepers& sleep = all.at(1).sleep();
  const auto begin = std::chrono::steady_clock::now();
  sleep.announce();
  sleep.sleep();
  CHECK(std::chrono::steady_clock::now() - begin >= host::sleepers::longest_sleep / 2);
  const std::byte word{7};
  for (std::uint32_t i = 1; i <= 200; ++i) {
    std::thread peer([&] { all.at(0).send_eagerly(1, {i, 0, 1}, &word, 1); });
    const auto take = [](const std::byte*) {};
    const auto receive = [&] {
      return all.at(1).receive_eagerly(0, {i, 0, 1}, 1, take) == hocket::transport::eager_receive::taken;
    };
    while (!receive()) {
      sleep.announce();
      if (receive()) {
        sleep.stay_awake();
        break;
      }
      sleep.sleep();
    }
    peer.join();
  }
}
