// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Which two groups can form a hybrid group. Groups with more common ranks than this rank would add gradients twice
// without an error.
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/group/split.hpp>
#include <hocket/parallel.hpp>

#include "support/catch.hpp"
#include "support/thread_ranks.hpp"

#include <span>
#include <string>
#include <utility>

namespace {

using hocket_test::on_ranks;
using hocket_test::thread_rank;

template <class Comm>
void check_not_crossing(thread_rank& me, const Comm& shards, const Comm& replicas) {
  const auto found =
      me.expect(hocket::errc::invalid_argument, [&] { static_cast<void>(hocket::hybrid(shards, replicas)); });
  me.check(found && std::string(found->what()).find("would be added twice") != std::string::npos,
           [&] { return found ? found->what() : ""; });
  int one = 1;
  hocket::all_reduce(me.comm(), hocket::in_place(std::span(&one, 1)));
  me.check(one == me.size(), "the communicator has failed");
}

TEST_CASE("groups with more than one common rank are rejected as a hybrid group, on every rank") {
  for (const auto& [copies, parts] : {std::pair(2, 2), {3, 2}, {2, 3}, {2, 4}}) {
    on_ranks(copies * parts, [&, copies = copies, parts = parts](thread_rank& me) {
      const auto ranks = hocket::mesh<"replica", "shard">(me.comm(), {copies, parts});
      const auto& replica = ranks.template along<"replica">();
      const auto& shard = ranks.template along<"shard">();
      check_not_crossing(me, shard, shard);
      check_not_crossing(me, replica, replica);
      check_not_crossing(me, ranks.all(), replica);
      check_not_crossing(me, shard, ranks.all());
      check_not_crossing(me, shard, hocket::split(shard, hocket::color{0}, hocket::key{-shard.rank()}));
    });
  }
}

TEST_CASE("groups with one common rank form a hybrid group, even if one of them has a single rank") {
  for (const auto& [copies, parts] : {std::pair(1, 1), {1, 3}, {3, 1}, {2, 3}, {4, 2}}) {
    on_ranks(copies * parts, [&, copies = copies, parts = parts](thread_rank& me) {
      const auto ranks = hocket::mesh<"replica", "shard">(me.comm(), {copies, parts});
      const auto& replica = ranks.template along<"replica">();
      const auto& shard = ranks.template along<"shard">();
      const auto alone = hocket::split(me.comm(), hocket::color{me.rank()}, hocket::key{0});
      const auto again = hocket::split(shard, hocket::color{0}, hocket::key{shard.rank()});
      const auto group = hocket::hybrid(shard, replica);
      me.check(group.shards == &shard && group.replicas == &replica, "not the given groups");
      static_cast<void>(hocket::hybrid(replica, shard));
      static_cast<void>(hocket::hybrid(again, replica));
      static_cast<void>(hocket::hybrid(alone, me.comm()));
      static_cast<void>(hocket::hybrid(me.comm(), alone));
    });
  }
}

}  // namespace
