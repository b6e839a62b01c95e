// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/catch.hpp"

#include "plan/every_plan.hpp"

#include <hocket/core/error.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/plan/prove.hpp>

#include <string>
#include <type_traits>

namespace plan = hocket::plan;
using plan::in;
using plan::out;
using plan::scratch;
using plan::violation;

namespace {

constexpr plan::collective all_gather{plan::collective_kind::all_gather, 0};
constexpr plan::collective all_reduce{plan::collective_kind::all_reduce, 0};
constexpr plan::collective barrier{plan::collective_kind::barrier, 0};

/// Two ranks swap their blocks.
plan::listed swap_blocks() {
  plan::listed swap("swap", all_gather, 2, {});
  for (const unsigned own : {0U, 1U}) {
    const int peer = own == 0 ? 1 : 0;
    swap.lane(static_cast<int>(own)) = {plan::send(peer, {own}, in(own)), plan::copy({own}, in(own), out(own)),
                                        plan::receive(peer, {1 - own}, out(1 - own))};
  }
  return swap;
}

/// Two ranks exchange contributions and combine them in rank order.
plan::listed exchange(plan::shape shape = {.scratch = 2, .order = plan::combination_order::rank_order}) {
  plan::listed both("exchange", all_reduce, 2, shape);
  both.lane(0) = {plan::send(1, {0}, in(0)),
                  plan::receive_reduce(1, {0}, in(0), out(0), plan::operand_order::local_first)};
  both.lane(1) = {plan::send(0, {0}, in(0)),
                  plan::receive_reduce(0, {0}, in(0), out(0), plan::operand_order::message_first)};
  return both;
}

}  // namespace

TEST_CASE("a correct plan is proven") {
  const plan::proof swapped = plan::prove(swap_blocks(), 2);
  CHECK(swapped);
  CHECK(swapped.what == violation::none);
  const plan::proof exchanged = plan::prove(exchange(), 2);
  CHECK(exchanged);
  CHECK(exchanged.order == plan::combination_order::fixed_tree);
  CHECK(exchanged.same_on_all_ranks);
  CHECK(exchanged.message() == "on 2 ranks: proven, can combine in the fixed tree, same bits on all ranks");
}

namespace {

/// Two ranks exchange `messages` messages, and send all of them before they receive the first.
plan::listed send_ahead(std::uint32_t messages) {
  plan::listed both("send ahead", {plan::collective_kind::all_to_all, 0}, 2, {.chunks_per_block = messages});
  for (int rank = 0; rank < 2; ++rank) {
    const auto own = static_cast<std::uint32_t>(rank) * messages;
    const std::uint32_t theirs = messages - own;
    for (std::uint32_t i = 0; i < messages; ++i)
      both.lane(rank).push_back(plan::send(1 - rank, {theirs + i}, in(theirs + i)));
    for (std::uint32_t i = 0; i < messages; ++i) {
      both.lane(rank).push_back(plan::receive(1 - rank, {theirs + i}, out(theirs + i)));
    }
    for (std::uint32_t i = 0; i < messages; ++i)
      both.lane(rank).push_back(plan::copy({own + i}, in(own + i), out(own + i)));
  }
  return both;
}

}  // namespace

TEST_CASE("ranks that send more messages ahead than the channel depth deadlock") {
  CHECK(plan::prove(send_ahead(plan::channel_depth), 2));
  CHECK(plan::prove(send_ahead(plan::channel_depth + 1), 2).what == violation::deadlock);
  plan::listed unread = send_ahead(plan::channel_depth + 1);
  unread.lane(1).clear();
  CHECK(plan::prove(unread, 2).what == violation::never_received);
}

TEST_CASE("a proof is trivially copyable") { STATIC_REQUIRE(std::is_trivially_copyable_v<plan::proof>); }

TEST_CASE("the prover rejects invalid rank counts and shapes") {
  CHECK(plan::prove(plan::ring_all_reduce{}, 0).what == violation::bad_rank_count);
  CHECK(plan::prove(plan::ring_all_reduce{}, -3).what == violation::bad_rank_count);
  CHECK(plan::prove(plan::binomial_broadcast{4}, 4).what == violation::bad_shape);
  CHECK(plan::prove(plan::double_tree{.chunks_per_half = 0}, 4).what == violation::bad_shape);
}

TEST_CASE("the prover rejects actions with an invalid peer, place or region") {
  plan::listed p = swap_blocks();
  const auto with = [&](plan::action a) {
    plan::listed changed = p;
    changed.lane(1).push_back(a);
    return plan::prove(changed, 2);
  };
  CHECK(with(plan::send(2, {0}, out(0))).what == violation::no_such_peer);
  CHECK(with(plan::send(1, {0}, out(0))).what == violation::no_such_peer);
  CHECK(with(plan::send(plan::all_peers, {0}, out(0))).what == violation::no_such_peer);
  CHECK(with(plan::copy({2}, out(2), out(0))).what == violation::no_such_place);
  CHECK(with(plan::copy({0, 3}, out(0), out(0))).what == violation::no_such_place);
  CHECK(with(plan::copy({0}, in(0), out(0))).what == violation::no_such_place);  // all_gather's input is the own block
  CHECK(with(plan::copy({0}, out(0), scratch(0))).what == violation::no_such_place);
  CHECK(with(plan::copy({1}, out(1), in(1))).what == violation::writes_in);
  CHECK(with(plan::copy({0, 0}, out(0), out(1))).what == violation::malformed);
  CHECK(with(plan::signal(0, 3)).what == violation::undeclared_peer_pointers);
  CHECK(with(plan::load(0, {0}, in(0), out(0))).what == violation::undeclared_peer_pointers);
  const plan::proof verdict = with(plan::send(2, {0}, out(0)));
  CHECK(verdict.where == plan::step{1, 0, 3, plan::send(2, {0}, out(0))});
}

TEST_CASE("the prover rejects copies and messages between chunks of different lengths") {
  plan::listed p = exchange({.chunks_per_block = 2, .order = plan::combination_order::rank_order});
  for (const int rank : {0, 1}) {
    for (plan::action& a : p.lane(rank)) a.count = 2;
  }
  CHECK(plan::prove(p, 2));
  plan::listed shifted = p;
  shifted.lane(0).push_back(plan::copy({0}, out(1), out(0)));
  CHECK(plan::prove(shifted, 2).what == violation::wrong_length);
  plan::listed overlapping("overlap", all_reduce, 1, {.chunks_per_block = 1, .scratch = 3});
  overlapping.lane(0) = {plan::copy({0}, in(0), scratch(0)), plan::copy({0}, in(0), out(0))};
  CHECK(plan::prove(overlapping, 1));
  plan::listed shorter = p;
  shorter.lane(0)[0].count = 1;
  CHECK(plan::prove(shorter, 2).what == violation::size_mismatch);
}

TEST_CASE("slots that are filled together must be used together") {
  const auto two_slots = [](plan::action last) {
    plan::listed p("slots", all_reduce, 1, {.chunks_per_block = 2, .scratch = 2});
    p.lane(0) = {plan::copy({0, 2}, in(0), scratch(0)), last};
    return plan::prove(p, 1);
  };
  CHECK(two_slots(plan::copy({0, 2}, scratch(0), out(0))));
  CHECK(two_slots(plan::copy({1, 1}, scratch(1), out(1))).what == violation::repacked_slot);
}

TEST_CASE("the prover finds an overwrite of data that may be in transit to a peer") {
  plan::listed p = exchange();
  CHECK(plan::prove(p, 2, {.in_place = true}).what == violation::overwrites_send);
  p = exchange();
  p.lane(0) = {plan::copy({0}, in(0), scratch(0)), plan::send(1, {0}, scratch(0)),
               plan::receive_reduce(1, {0}, in(0), out(0), plan::operand_order::local_first),
               plan::copy({0}, out(0), scratch(0))};
  const plan::proof found = plan::prove(p, 2);
  CHECK(found.what == violation::overwrites_send);
  CHECK(found.where.position == 3);
  CHECK(found.other.position == 1);
  CHECK(found.memory.where == plan::region::scratch);
  CHECK(found.message() ==
        "on 2 ranks: rank 0, step 3 (copy out[0] to scratch[0]): the step overwrites what may still be in transit to a "
        "peer; the other step: rank 0, step 1 (send scratch[0] to rank 1, with the length of chunk[0]); in scratch[0] "
        "of rank 0");
  p.lane(0)[3] = plan::joined(p.lane(0)[3]);
  CHECK(plan::prove(p, 2));
}

TEST_CASE("the prover finds lanes that access the same memory without order") {
  plan::listed p("lanes", all_reduce, 1, {.lanes = 2});
  p.lane(0, 0) = {plan::copy({0}, in(0), out(0))};
  p.lane(0, 1) = {plan::copy({0}, in(0), out(0))};
  CHECK(plan::prove(p, 1).what == violation::write_races_write);
  plan::listed q = exchange({.lanes = 2, .order = plan::combination_order::rank_order});
  q.lane(0, 1) = {q.lane(0, 0)[1]};
  q.lane(0, 0).pop_back();
  CHECK(plan::prove(q, 2));
}

TEST_CASE("two lanes must not share a channel") {
  plan::listed p("shared", all_reduce, 2,
                 {.chunks_per_block = 2, .lanes = 2, .order = plan::combination_order::rank_order});
  for (const unsigned lane : {0U, 1U}) {
    for (const int rank : {0, 1}) {
      const auto order = rank == 0 ? plan::operand_order::local_first : plan::operand_order::message_first;
      p.lane(rank, lane) = {plan::send(1 - rank, {lane}, in(lane)),
                            plan::receive_reduce(1 - rank, {lane}, in(lane), out(lane), order)};
    }
  }
  CHECK(plan::prove(p, 2).what == violation::unordered_channel);
  for (const int rank : {0, 1}) {
    for (plan::action& a : p.lane(rank, 1)) a.channel = 1;
  }
  CHECK(plan::prove(p, 2));
}

TEST_CASE("the prover finds deadlocks and messages that are never sent or never received") {
  plan::listed p = exchange();
  for (const int rank : {0, 1}) std::swap(p.lane(rank)[0], p.lane(rank)[1]);
  plan::proof found = plan::prove(p, 2);
  CHECK(found.what == violation::deadlock);
  CHECK(found.where.rank == 0);
  CHECK(found.other.rank == 1);
  p = exchange();
  for (const int rank : {0, 1})
    p.lane(rank)[1].join = true;  // the message has drained only when the peer has received it
  CHECK(plan::prove(p, 2).what == violation::deadlock);
  p = exchange();
  p.lane(1).erase(p.lane(1).begin());
  CHECK(plan::prove(p, 2).what == violation::never_sent);
  p = exchange();
  p.lane(1).push_back(plan::send(0, {0}, out(0)));
  found = plan::prove(p, 2);
  CHECK(found.what == violation::never_received);
  CHECK(found.where == plan::step{1, 0, 2, plan::send(0, {0}, out(0))});
}

TEST_CASE("each signal must be used once and waited for") {
  const plan::listed sound = plan::materialise(plan::one_shot{}, 3);
  REQUIRE(plan::prove(sound, 3));
  plan::listed p = sound;
  p.lane(2).push_back(plan::signal(0, 7));
  CHECK(plan::prove(p, 3).what == violation::never_waited_for);
  p.lane(0).push_back(plan::wait(2, 7));
  CHECK(plan::prove(p, 3));
  p.lane(0).push_back(plan::wait(2, 7));
  CHECK(plan::prove(p, 3).what == violation::tag_reused);
  p.lane(0).back() = plan::wait(2, 8);
  CHECK(plan::prove(p, 3).what == violation::never_signalled);
  p = sound;
  p.lane(2).push_back(plan::signal(0, 1));
  CHECK(plan::prove(p, 3).what == violation::tag_reused);
}

TEST_CASE("a plain signal is different from the signal of a push") {
  plan::listed p = plan::materialise(plan::push_all_reduce{}, 3);
  REQUIRE(plan::prove(p, 3));
  p.lane(1)[1] = plan::wait(plan::all_peers, 0);
  CHECK(plan::prove(p, 3).what == violation::never_signalled);
  p = plan::materialise(plan::push_all_reduce{}, 3);
  p.lane(1).push_back(plan::push(0, {0}, in(0), 1));
  p.lane(0).push_back(plan::wait_push(1, 1));
  CHECK(plan::prove(p, 3).what == violation::tag_reused);
}

TEST_CASE("a peer's memory may be read only between its first signal and its end") {
  plan::listed p = plan::materialise(plan::one_shot{}, 3);
  p.lane(1).erase(p.lane(1).begin() + 1);
  CHECK(plan::prove(p, 3).what == violation::reads_before_begin);
  p = plan::materialise(plan::one_shot{}, 3);
  for (const int rank : {0, 1, 2}) p.lane(rank).resize(3);
  CHECK(plan::prove(p, 3).what == violation::reads_after_end);
}

TEST_CASE("each contribution must be counted exactly once") {
  plan::listed p = plan::materialise(plan::ring_all_reduce{}, 4);
  plan::listed twice = exchange();
  twice.lane(0).push_back(plan::send(1, {0}, out(0)));
  twice.lane(1).push_back(plan::receive_reduce(0, {0}, in(0), out(0), plan::operand_order::local_first));
  const plan::proof found = plan::prove(twice, 2);
  CHECK(found.what == violation::counted_twice);
  CHECK(found.contribution == 1);
  plan::listed less = exchange();
  less.lane(0)[1] = plan::receive(1, {0}, out(0));
  CHECK(plan::prove(less, 2).what == violation::missing_contribution);
  CHECK(plan::prove(less, 2).contribution == 0);
  for (plan::action& a : p.lane(2)) {
    if (a.kind == plan::action_kind::receive_reduce) a.from_at = (a.from_at + 1) % 4;
  }
  CHECK_FALSE(plan::prove(p, 4));
}

TEST_CASE("the prover rejects a plan that claims a stricter order than it has") {
  plan::listed p = exchange();
  for (const int rank : {0, 1}) p.lane(rank)[1].message_first = !p.lane(rank)[1].message_first;
  CHECK(plan::prove(p, 2).what == violation::order_overclaimed);
  plan::listed humble = exchange({.order = plan::combination_order::any_order});
  humble.lane(1)[1].message_first = false;
  const plan::proof found = plan::prove(humble, 2);
  CHECK(found);
  CHECK_FALSE(found.same_on_all_ranks);  // 0 ∘ 1 on rank 0, 1 ∘ 0 on rank 1
  CHECK(found.order == plan::combination_order::any_order);
}

TEST_CASE("the prover finds a barrier that releases a rank too early") {
  plan::listed p("star", barrier, 3, {});
  p.lane(0) = {plan::receive(1, {0, 0}, {}), plan::receive(2, {0, 0}, {}), plan::send(1, {0, 0}, {}),
               plan::send(2, {0, 0}, {})};
  p.lane(1) = {plan::send(0, {0, 0}, {}), plan::receive(0, {0, 0}, {})};
  p.lane(2) = p.lane(1);
  CHECK(plan::prove(p, 3));
  std::swap(p.lane(0)[1], p.lane(0)[2]);  // rank 1 is released before rank 2 has arrived
  const plan::proof found = plan::prove(p, 3);
  CHECK(found.what == violation::barrier_leaks);
  CHECK(found.where.rank == 1);
  CHECK(found.other.rank == 2);
}

TEST_CASE("the prover finds a plan with a wrong result") {
  plan::listed p = swap_blocks();
  p.lane(1).erase(p.lane(1).begin() + 1);
  const plan::proof found = plan::prove(p, 2);
  CHECK(found.what == violation::wrong_result);
  CHECK(found.memory_of == 1);
  CHECK(found.memory.at == 1);
}

TEST_CASE("materialise keeps every action") {
  const plan::double_tree tree{.chunks_per_half = 3};
  const plan::listed list = plan::materialise(tree, 7);
  CHECK(std::string(list.name()) == "double_tree");
  for (int rank = 0; rank < 7; ++rank) {
    for (unsigned lane = 0; lane < 4; ++lane) {
      REQUIRE(list.length(7, rank, lane) == tree.length(7, rank, lane));
      for (unsigned i = 0; i < list.length(7, rank, lane); ++i) {
        CHECK(list.at(7, rank, lane, i) == tree.at(7, rank, lane, i));
      }
    }
  }
}

TEST_CASE("a listed plan is for one number of ranks, which its error names") {
  const plan::listed p = swap_blocks();
  try {
    static_cast<void>(p.shape(3));
    FAIL("no error");
  } catch (const hocket::error& e) {
    CHECK(e.code() == hocket::errc::invalid_argument);
    CHECK(e.reason() ==
          "plan 'swap' is listed for 2 ranks and cannot run on 3: list it for that number too, or choose "
          "another algorithm");
  }
  CHECK_THROWS_AS(p.lane(2), hocket::error);
  CHECK_THROWS_AS(p.lane(0, 1), hocket::error);
  CHECK_THROWS_AS(plan::listed("none", all_reduce, 0, {}), hocket::error);
  CHECK(plan::prove(plan::any_algorithm(swap_blocks()), 2));
}

TEST_CASE("every violation has a distinct description") {
  for (int i = 0; i <= static_cast<int>(violation::barrier_leaks); ++i) {
    for (int j = 0; j < i; ++j) {
      CHECK(std::string(to_string(static_cast<violation>(i))) != to_string(static_cast<violation>(j)));
    }
    CHECK(std::string(to_string(static_cast<violation>(i))) != "unknown violation");
  }
}
