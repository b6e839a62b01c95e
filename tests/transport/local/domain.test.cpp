// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The endpoint group of threads as ranks fulfils the requirements of transport/concept.hpp.
#include "support/catch.hpp"

#include <hocket/core/deadline.hpp>
#include <hocket/transport/contexts.hpp>
#include <hocket/transport/local/domain.hpp>
#include <hocket/transport/local/world.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

namespace local = hocket::local;
using hocket::transport::message_id;

namespace {

/// Opens the endpoint groups of one communicator, which the test's thread uses.
std::vector<std::unique_ptr<local::endpoint_group>> open_endpoints(int ranks, std::size_t window_bytes = 256) {
  const auto place = std::make_shared<local::world>(ranks);
  const auto members = std::make_shared<std::vector<int>>(static_cast<std::size_t>(ranks));
  std::iota(members->begin(), members->end(), 0);
  std::vector<std::unique_ptr<local::endpoint_group>> endpoints(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      hocket::transport::open_parameters how;
      how.members = members;
      how.rank = rank;
      how.window_bytes = window_bytes;
      how.exchange = [&](std::span<const std::byte> blob) {
        return place->exchange(rank, blob, hocket::deadline::after(std::chrono::seconds(30)));
      };
      endpoints[static_cast<std::size_t>(rank)] =
          local::domain::open(std::make_shared<local::domain>(place, rank), how);
    });
  }
  for (std::thread& each : threads) each.join();
  return endpoints;
}

struct message {
  std::vector<std::byte> bytes;
  explicit message(std::size_t size, int value) : bytes(size, static_cast<std::byte>(value)) {}
};

}  // namespace

TEST_CASE("a message arrives once and in order, and is drained when it is released") {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{32}, std::size_t{33}, std::size_t{5000}}) {
    const auto endpoints = open_endpoints(2);
    const message_id id{5, 2};
    hocket::failure fail;
    const message first(size, 1), second(size, 2);
    local::endpoint_group::sending one, two;
    local::endpoint_group::receiving coming;
    CHECK(endpoints[1]->try_receive(coming, 0, id, nullptr, size, fail) == nullptr);
    CHECK(endpoints[0]->try_send(one, 1, id, first.bytes.data(), size, fail));
    CHECK(endpoints[0]->try_send(two, 1, id, second.bytes.data(), size, fail));
    CHECK(endpoints[0]->drained(one) == (size <= 32));
    for (const message* each : {&first, &second}) {
      const void* const found = endpoints[1]->try_receive(coming, 0, id, nullptr, size, fail);
      REQUIRE(found != nullptr);
      CHECK((size == 0 || std::memcmp(found, each->bytes.data(), size) == 0));
      endpoints[1]->release(coming);
    }
    CHECK(endpoints[0]->drained(one));
    CHECK(endpoints[0]->drained(two));
    CHECK(endpoints[1]->try_receive(coming, 0, id, nullptr, size, fail) == nullptr);
    CHECK(!fail);
  }
}

TEST_CASE("a sender is ahead by at most the depth of a channel") {
  const auto endpoints = open_endpoints(2);
  const message_id id{1, 0};
  hocket::failure fail;
  int value = 7;
  std::vector<local::endpoint_group::sending> sends(hocket::transport::channel_depth + 1);
  for (std::size_t i = 0; i < hocket::transport::channel_depth; ++i) {
    CHECK(endpoints[0]->try_send(sends[i], 1, id, &value, sizeof value, fail));
  }
  CHECK(!endpoints[0]->try_send(sends.back(), 1, id, &value, sizeof value, fail));
  local::endpoint_group::sending other;
  CHECK(endpoints[0]->try_send(other, 1, message_id{1, 1}, &value, sizeof value, fail));
  local::endpoint_group::receiving coming;
  REQUIRE(endpoints[1]->try_receive(coming, 0, id, nullptr, sizeof value, fail) != nullptr);
  CHECK(!endpoints[0]->try_send(sends.back(), 1, id, &value, sizeof value, fail));
  endpoints[1]->release(coming);
  CHECK(endpoints[0]->try_send(sends.back(), 1, id, &value, sizeof value, fail));
  CHECK(!fail);
}

TEST_CASE("channels and operations in flight are separate") {
  const auto endpoints = open_endpoints(3);
  hocket::failure fail;
  std::vector<int> values;
  for (int i = 0; i < 1000; ++i) values.push_back(i);
  int next = 0;
  for (std::uint32_t sequence = 1; sequence <= hocket::transport::window; ++sequence) {
    for (unsigned channel = 0; channel < hocket::transport::max_channels; ++channel) {
      for (const int to : {1, 2}) {
        local::endpoint_group::sending going;
        CHECK(
            endpoints[0]->try_send(going, to, {sequence, channel}, &values[static_cast<std::size_t>(next++)], 4, fail));
      }
    }
  }
  for (std::uint32_t sequence = hocket::transport::window; sequence >= 1; --sequence) {
    for (unsigned channel = hocket::transport::max_channels; channel-- > 0;) {
      for (const int to : {2, 1}) {
        local::endpoint_group::receiving coming;
        const void* const found =
            endpoints[static_cast<std::size_t>(to)]->try_receive(coming, 0, {sequence, channel}, nullptr, 4, fail);
        REQUIRE(found != nullptr);
        int value = 0;
        std::memcpy(&value, found, sizeof value);
        CHECK(value == --next);
        endpoints[static_cast<std::size_t>(to)]->release(coming);
      }
    }
  }
  CHECK(!fail);
}

TEST_CASE("a message of another size or operation is a mismatch") {
  const auto endpoints = open_endpoints(2);
  int value = 7;
  hocket::failure fail;
  local::endpoint_group::sending going;
  local::endpoint_group::receiving coming;
  CHECK(endpoints[1]->try_send(going, 0, {1, 0}, &value, sizeof value, fail));
  CHECK(endpoints[0]->try_receive(coming, 1, {1, 0}, nullptr, 8, fail) == nullptr);
  CHECK(fail.code == hocket::errc::mismatch);
  CHECK(fail.context.peer == 1);
  fail = {};
  CHECK(endpoints[1]->try_send(going, 0, {2, 0}, &value, sizeof value, fail));
  CHECK(endpoints[0]->try_receive(coming, 1, {2 + hocket::transport::window, 0}, nullptr, 4, fail) == nullptr);
  CHECK(fail.code == hocket::errc::mismatch);
}

TEST_CASE("windows are zeroed and aligned, and have the same address on all ranks") {
  const auto endpoints = open_endpoints(3, 4096);
  for (int owner = 0; owner < 3; ++owner) {
    std::byte* const window = endpoints[static_cast<std::size_t>(owner)]->window_of(owner);
    CHECK(reinterpret_cast<std::uintptr_t>(window) % 64 == 0);
    for (std::size_t i = 0; i < 4096; ++i) CHECK(window[i] == std::byte{0});
    for (const auto& each : endpoints) CHECK(each->window_of(owner) == window);
  }
}

TEST_CASE("a published buffer can be resolved") {
  const auto endpoints = open_endpoints(2);
  const int value = 3;
  CHECK(endpoints[1]->resolve(0, endpoints[0]->publish(&value, sizeof value)) ==
        reinterpret_cast<const std::byte*>(&value));
}

TEST_CASE("an abandoned rank breaks only the endpoint groups of its communicators") {
  const auto place = std::make_shared<local::world>(3);
  const auto open_alone = [&](int rank) {
    hocket::transport::open_parameters how;
    how.members = std::make_shared<std::vector<int>>(1, rank);
    how.exchange = [](std::span<const std::byte> blob) {
      return std::vector<std::vector<std::byte>>(1, std::vector<std::byte>(blob.begin(), blob.end()));
    };
    return local::domain::open(std::make_shared<local::domain>(place, rank), how);
  };
  const auto one = open_alone(1);
  const auto two = open_alone(2);
  hocket::failure fail;
  CHECK(!one->broken(fail));
  place->abandon(2);
  place->abandon(0);
  CHECK(!one->broken(fail));
  CHECK(two->broken(fail));
  CHECK(fail.code == hocket::errc::peer_lost);
  CHECK(fail.context.peer == 0);
}

TEST_CASE("a context number that is in use is never proposed or claimed again") {
  hocket::transport::contexts numbers;
  std::set<std::uint32_t> seen;
  for (int i = 0; i < 10; ++i) CHECK(seen.insert(numbers.propose()).second);
  CHECK(numbers.claim(50));
  CHECK(!numbers.claim(50));
  CHECK(numbers.propose() > 50);
  numbers.release(50);
  CHECK(numbers.claim(50));
}
