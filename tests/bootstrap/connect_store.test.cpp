// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <hocket/bootstrap/connect_store.hpp>

#include <map>
#include <string>

#include "bootstrap/ranks.hpp"
#include "support/catch.hpp"

using namespace bootstrap_test;
using bootstrap::any_store;
using bootstrap::connect_store;
using bootstrap::world_description;
using hocket::errc;

namespace {

/// A user-defined store with only the required members.
class users_store {
 public:
  explicit users_store(std::map<std::string, bootstrap::blob>& values) : values_(&values) {}
  void set(std::string_view key, bootstrap::byte_view value, const hocket::wait_limit&) {
    (*values_)[std::string(key)].assign(value.begin(), value.end());
  }
  bootstrap::blob get(std::string_view key, const hocket::wait_limit&) { return values_->at(std::string(key)); }

 private:
  std::map<std::string, bootstrap::blob>* values_;
};

}  // namespace

static_assert(bootstrap::store<bootstrap::tcp_store> && bootstrap::has_gather<bootstrap::tcp_store> &&
              bootstrap::has_add<bootstrap::tcp_store>);
static_assert(bootstrap::store<bootstrap::directory_store> && !bootstrap::has_gather<bootstrap::directory_store>);
static_assert(bootstrap::store<any_store> && bootstrap::has_gather<any_store>);
static_assert(bootstrap::store<users_store> && !bootstrap::has_gather<users_store> && !bootstrap::has_add<users_store>);
static_assert(!bootstrap::store<int> && !bootstrap::store<std::string>);

TEST_CASE("a world of one rank has a working store, although its description names none") {
  any_store store = connect_store(world_description{}, within(1s));
  CHECK(bootstrap::exchange(store, "a", 0, 1, blob_of(0), within(1s)) == blobs_of(1));
  bootstrap::single_store place;
  place.set("k", bootstrap::text_bytes("v"), within(1s));
  CHECK(bootstrap::blob_text(place.get("k", within(1s))) == "v");
  CHECK_THROWS_AS(place.get("other", within(1s)), hocket::error);
}

TEST_CASE("connect_store opens the store that the description names") {
  const tcp_place place(3);
  const scratch_directory directory;
  const bool over_tcp = GENERATE(true, false);
  const auto outcomes = as_ranks(first_ranks(3), [&](int rank, outcome& mine) {
    world_description world;
    world.rank = rank;
    world.ranks = 3;
    world.token = "t";
    if (over_tcp) {
      world.address = "127.0.0.1";
      world.port = place.port();
      world.listener = place.options(rank).listener;
    } else {
      world.directory = directory.path();
    }
    any_store store = connect_store(world, within(5s));
    mine.all = bootstrap::exchange(store, "a", rank, 3, blob_of(rank), within(5s));
  });
  for (const outcome& each : outcomes) {
    INFO(each.cause.message());
    CHECK(each.all == blobs_of(3));
  }
}

TEST_CASE("a description without a store, or with a wrong listener, raises bad_environment") {
  world_description world;
  world.ranks = 2;
  const auto nowhere = as_ranks({0}, [&](int, outcome&) { connect_store(world, within(1s)); });
  CHECK(nowhere[0].cause.code == errc::bad_environment);
  world.address = "127.0.0.1";
  world.port = 1;
  world.listener = 0;
  const auto stale = as_ranks({0}, [&](int, outcome&) { connect_store(world, within(1s)); });
  CHECK(stale[0].cause.code == errc::bad_environment);
  CHECK(stale[0].cause.reason.find("HOCKET_STORE_FD='0'") != std::string::npos);
}

TEST_CASE("exchange needs only set and get of a store") {
  std::map<std::string, bootstrap::blob> values{{"a/1", blob_of(1)}};
  users_store store(values);
  CHECK(bootstrap::exchange(store, "a", 0, 2, blob_of(0), within(1s)) == blobs_of(2));
  CHECK(bootstrap::exchange(store, "a", 1, 2, blob_of(1), within(1s)) == blobs_of(2));
  any_store hidden{users_store(values)};
  CHECK(bootstrap::exchange(hidden, "a", 1, 2, blob_of(1), within(1s)) == blobs_of(2));
}
