// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Blocks that two ranks pass to each other: each belongs to one of them, and none is lost.
#include "support/catch.hpp"

#include <hocket/transport/host/block_stack.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <random>
#include <set>

namespace host = hocket::host;

namespace {

/// A message with a block, under way.
struct passed {
  host::block_stack::index block;
  std::uint32_t left;
};

/// Two ranks, and the messages from each to the other.
class pair {
 public:
  explicit pair(host::block_layout layout) : memory_(new std::byte[2 * layout.all_bytes()]) {
    std::byte* const high = memory_.get() + layout.all_bytes();
    for (const int rank : {0, 1}) {
      ranks_[rank] = host::block_stack(memory_.get(), high, rank == 0, &returned_[rank], &returned_[1 - rank], layout);
    }
  }

  host::block_stack& at(int rank) { return ranks_[rank]; }
  std::size_t under_way_to(int rank) const { return messages_[rank].size(); }

  /// Returns whether `from` has a block to send.
  bool send(int from) {
    if (!at(from).available()) return false;
    const auto block = at(from).take();
    messages_[1 - from].push_back({block, at(from).size()});
    return true;
  }
  /// Returns the block that it has received.
  host::block_stack::index receive(int to) {
    const passed one = messages_[to].front();
    messages_[to].pop_front();
    at(to).put(one.block);
    at(to).return_surplus(one.left);
    return one.block;
  }

 private:
  std::unique_ptr<std::byte[]> memory_;
  host::returned_blocks returned_[2] = {};
  host::block_stack ranks_[2];
  std::deque<passed> messages_[2];  ///< by the rank that receives them
};

}  // namespace

TEST_CASE("an answer is written into the block that has been received last") {
  pair both(host::block_layout{});
  REQUIRE(both.send(0));
  const auto block = both.receive(1);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(both.send(1));
    REQUIRE(both.receive(0) == block);
    REQUIRE(both.send(0));
    REQUIRE(both.receive(1) == block);
  }
}

TEST_CASE("no block is lost or belongs to both, in whatever order they are sent and received") {
  const auto layout = GENERATE(host::block_layout{512, 1}, host::block_layout{512, 8}, host::block_layout{});
  pair both(layout);
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const int rank = static_cast<int>(random() % 2);
    // Phases in which one of the two sends more often.
    const bool sends = random() % 8 < ((i / 1000 + rank) % 2 == 0 ? 6U : 2U);
    if (sends) both.send(rank);
    if (!sends && both.under_way_to(rank) > 0) both.receive(rank);
  }
  for (const int rank : {0, 1}) {
    while (both.under_way_to(rank) > 0) both.receive(rank);
  }
  std::set<int> found;
  for (const int rank : {0, 1}) {
    while (both.at(rank).available()) CHECK(found.insert(both.at(rank).take()).second);
  }
  CHECK(found.size() == 2 * layout.count);
}

TEST_CASE("a rank that sends gets blocks back unless it leaves messages that have them") {
  const auto layout = GENERATE(host::block_layout{512, 1}, host::block_layout{512, 8}, host::block_layout{});
  pair both(layout);
  for (int i = 0; i < 100; ++i) {
    for (int k = 0; k < i % 5; ++k) both.send(1);
    std::uint32_t sent = 0;
    while (sent < 5 * layout.count) {
      const std::uint32_t before = sent;
      while (both.send(0)) ++sent;
      if (sent == before) {
        REQUIRE(both.under_way_to(0) > 0);
        both.receive(0);
      }
      while (both.under_way_to(1) > 0) both.receive(1);
    }
    while (both.under_way_to(0) > 0) both.receive(0);
  }
}

TEST_CASE("blocks do not overlap") {
  for (const std::size_t all : {std::size_t{1}, std::size_t{4096}, std::size_t{1} << 17, std::size_t{1} << 30}) {
    const host::block_layout layout = host::block_layout::within(all);
    pair both(layout);
    std::set<const std::byte*> begins;
    for (const int rank : {0, 1}) {
      while (both.at(rank).available()) begins.insert(both.at(rank).at(both.at(rank).take()));
    }
    REQUIRE(begins.size() == 2 * layout.count);
    for (auto one = begins.begin(), next = std::next(one); next != begins.end(); ++one, ++next) {
      CHECK(*next - *one >= static_cast<std::ptrdiff_t>(layout.bytes));
    }
  }
}
