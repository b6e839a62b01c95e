// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every wrong call and every missing peer soon leads to an error that names it.
#include "collective/cases.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/recv.hpp>
#include <hocket/collective/reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/collective/scatter_v.hpp>
#include <hocket/collective/send.hpp>
#include <hocket/collective/send_recv.hpp>
#include <hocket/group/local.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/plan/listed.hpp>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

bool mentions(const std::optional<hocket::error>& found, const std::string& text) {
  return found && std::string(found->what()).find(text) != std::string::npos;
}

/// Checks that a call with invalid arguments is refused with the text `says`, and does not revoke the communicator.
template <class Call>
void check_refused(thread_rank& me, const std::string& says, Call call) {
  const auto found = me.expect(hocket::errc::invalid_argument, call);
  me.check(mentions(found, says),
           [&] { return "the message lacks '" + says + "': " + (found ? found->what() : "nothing"); });
  me.check(mentions(found, "errors.test.cpp"), "the message does not name the call");
  me.check(!me.comm().revoked(), "a refused call revoked the communicator");
}

}  // namespace

TEST_CASE("invalid arguments are refused, and the communicator stays usable") {
  on_ranks(3, [](thread_rank& me) {
    auto& comm = me.comm();
    std::vector<float> five(5), six(6), seven(7), many(100);
    const std::span<float> all(many);
    check_refused(me, "in has 5 elements and out 6", [&] { hocket::all_reduce(comm, five, six); });
    check_refused(me, "in has 5 elements and out 5; in must have the size of out times the number of ranks",
                  [&] { hocket::reduce_scatter(comm, five, std::span(five)); });
    check_refused(me, "in has 5 elements and out 6", [&] { hocket::all_gather(comm, five, six); });
    check_refused(me, "in has 7 elements and out 7", [&] { hocket::all_to_all(comm, seven, std::span(seven)); });
    check_refused(me, "overlap", [&] { hocket::all_reduce(comm, all.first(50), all.subspan(1, 50)); });
    check_refused(me, "overlap", [&] { hocket::all_reduce(comm, all.first(4), all.subspan(2, 4)); });
    check_refused(me, "overlap", [&] { hocket::all_to_all(comm, all.first(30), all.subspan(1, 30)); });
    check_refused(me, "overlap", [&] { hocket::all_gather(comm, all.subspan(31, 30), all.first(90)); });
    check_refused(me, "overlap", [&] { hocket::reduce_scatter(comm, all.first(90), all.subspan(61, 30)); });
    check_refused(me, "root is 3; it must be one of 0 to 2", [&] { hocket::broadcast(comm, five, hocket::root{3}); });
    check_refused(me, "root is -1", [&] { hocket::broadcast(comm, five, hocket::root{-1}); });
    check_refused(me, "root is 3", [&] { hocket::reduce(comm, five, five, std::plus<>{}, hocket::root{3}); });
    check_refused(me, "root is -1", [&] { hocket::gather(comm, five, five, hocket::root{-1}); });
    check_refused(me, "root is 7", [&] { hocket::scatter(comm, five, five, hocket::root{7}); });
    check_refused(me, "peer is 3", [&] { hocket::send(comm, five, hocket::peer{3}); });
    check_refused(me, "peer is -1", [&] { hocket::send(comm, five, hocket::peer{-1}); });
    check_refused(me, "peer is -1", [&] { hocket::recv(comm, five, hocket::peer{-1}); });
    check_refused(me, "peer is 9",
                  [&] { hocket::send_recv(comm, five, hocket::peer{0}, std::span(six), hocket::peer{9}); });
    check_refused(me, "tag is 65536", [&] { hocket::send(comm, five, hocket::peer{0}, hocket::tag{65536}); });
    check_refused(me, "tag is -1", [&] { hocket::recv(comm, five, hocket::peer{0}, hocket::tag{-1}); });
    check_refused(me, "in has 5 elements and out 6", [&] { auto lost = hocket::all_reduce_async(comm, five, six); });
    const auto past = hocket::with(hocket::timeout(-5s));
    const char* const refusal = "timeout is -5000000000 ns; it must be at least 0";
    std::vector<float> four(4), sums(4);
    check_refused(me, refusal, [&] { hocket::barrier(comm, past); });
    check_refused(me, refusal, [&] { comm.set_timeout(-5s); });
    check_refused(me, refusal, [&] { hocket::shrink(comm, past); });
    check_refused(me, refusal, [&] { hocket::all_reduce(comm, four, sums, std::plus<>{}, past); });
    check_refused(me, refusal, [&] { auto lost = hocket::barrier_async(comm, past); });
    check_refused(me, refusal, [&] { hocket::send(comm, five, hocket::peer{0}, hocket::tag{1}, past); });
    check_refused(me, refusal,
                  [&] { auto lost = hocket::recv_async(comm, five, hocket::peer{0}, hocket::tag{1}, past); });

    // Only the root uses both buffers.
    const hocket::root own{me.rank()};
    check_refused(me, "in has 5 elements and out 6; they must be equal",
                  [&] { hocket::reduce(comm, five, six, std::plus<>{}, own); });
    check_refused(me, "in has 5 elements and out 6; out must have the size of in times the number of ranks",
                  [&] { hocket::gather(comm, five, six, own); });
    check_refused(me, "in has 7 elements and out 6; in must have the size of out times the number of ranks",
                  [&] { hocket::scatter(comm, seven, six, own); });
    check_refused(me, "overlap", [&] { hocket::reduce(comm, all.first(9), all.subspan(1, 9), std::plus<>{}, own); });
    check_refused(me, "overlap", [&] { hocket::gather(comm, all.subspan(31, 30), all.first(90), own); });
    check_refused(me, "overlap", [&] { hocket::scatter(comm, all.first(90), all.subspan(61, 30), own); });
    const std::vector<std::size_t> counts = {5, 5, 5};
    check_refused(me, "in has 6 elements; the count of this rank is 5",
                  [&] { hocket::gather_v(comm, six, many, hocket::counts{counts}, own); });
    check_refused(me, "out has 100 elements; the sum of counts is 15",
                  [&] { hocket::gather_v(comm, five, many, hocket::counts{counts}, own); });
    check_refused(me, "out has 6 elements; the count of this rank is 5",
                  [&] { hocket::scatter_v(comm, all.first(15), six, hocket::counts{counts}, own); });
    check_refused(me, "moves several blocks together", [&] {
      hocket::gather_v(comm, five, all.first(15), hocket::counts{counts}, own, hocket::with(hocket::binomial));
    });

    // All ranks still agree on the next operation.
    int one = 1, sum = 0;
    hocket::all_reduce(comm, std::span(&one, 1), std::span(&sum, 1));
    me.check(sum == 3, "the communicator does not work any more");
  });
}

TEST_CASE("plans that do not suit the call are refused") {
  on_ranks(3, [](thread_rank& me) {
    auto& comm = me.comm();
    std::vector<float> in(20), out(20);
    const auto with_plan = [&](const auto& chosen) {
      hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::algorithm(chosen)));
    };
    check_refused(me, "0 pieces",
                  [&] { hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::double_tree(0))); });
    for (const std::uint32_t pieces : {~0U, 0x80000001U, 1U << 16U}) {
      check_refused(me, "pieces; the maximum is 65536", [&] {
        hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::double_tree(pieces)));
      });
    }
    check_refused(me, "another collective", [&] { with_plan(plan::ring_all_gather{}); });
    check_refused(me, "56 bytes", [&] { with_plan(plan::push_all_reduce{}); });
    check_refused(me, "56 bytes",
                  [&] { hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::push)); });
    check_refused(me, "reorders operands", [&] {
      hocket::all_reduce(
          comm, in, out, [](float, float b) { return b; }, hocket::with(hocket::algorithm(plan::ring_all_reduce{})));
    });
    plan::listed mine("mine", {plan::collective_kind::all_reduce}, 2, {});
    check_refused(me, "listed for 2 ranks", [&] { with_plan(mine); });
    std::error_code code;
    hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::algorithm(mine)), code);
    me.check(code == hocket::errc::invalid_argument, "the code of a plan for other ranks");
    const auto list = [&](const plan::action& bad) {
      plan::listed limits("limits", {plan::collective_kind::all_reduce}, 3, {});
      for (int rank = 0; rank < 3; ++rank) limits.lane(rank) = {bad};
      return limits;
    };
    check_refused(me, "channel", [&] { with_plan(list(plan::send(0, {0}, plan::in(0), 4))); });
    check_refused(me, "tag", [&] { with_plan(list(plan::signal(plan::all_peers, 5))); });
    check_refused(me, "a rank that this communicator does not have",
                  [&] { with_plan(list(plan::send(3, {0}, plan::in(0)))); });
    check_refused(me, "a chunk that its shape does not have",
                  [&] { with_plan(list(plan::send(0, {1}, plan::in(1)))); });
    const char* const beyond = "beyond the end of a buffer";
    check_refused(me, beyond, [&] { with_plan(list(plan::send(0, {0}, plan::in(9)))); });
    check_refused(me, beyond, [&] { with_plan(list(plan::receive(0, {0}, plan::out(1)))); });
    check_refused(me, beyond, [&] { with_plan(list(plan::load(0, {0}, plan::out(1 << 16), plan::out(0)))); });
    check_refused(me, beyond, [&] { with_plan(list(plan::receive(0, {0}, plan::scratch(0)))); });
    check_refused(me, "a rank that this communicator does not have",
                  [&] { with_plan(list(plan::send(-1, {0}, plan::in(0)))); });
    check_refused(me, "a rank that this communicator does not have", [&] { with_plan(list(plan::signal(-2, 0))); });
    check_refused(me, "from a rank to itself", [&] { with_plan(list(plan::send(me.rank(), {0}, plan::in(0)))); });
    const int next = (me.rank() + 1) % 3;
    check_refused(me, "neither out nor scratch", [&] { with_plan(list(plan::receive(next, {0}, plan::in(0)))); });
    check_refused(me, "neither out nor scratch", [&] { with_plan(list(plan::copy({0}, plan::in(0), {}))); });
    check_refused(me, "can't read from", [&] { with_plan(list(plan::send(next, {0}, plan::inbox()))); });
    check_refused(me, "can't read from", [&] { with_plan(list(plan::copy({0}, plan::inbox(), plan::out(0)))); });
    check_refused(me, "does not set peer_pointers",
                  [&] { with_plan(list(plan::load(next, {0}, plan::in(0), plan::out(0)))); });
    check_refused(me, "does not set peer_pointers",
                  [&] { with_plan(list(plan::load_reduce({0}, plan::in(0), plan::out(0)))); });
    const auto pointing = [&](plan::collective_kind collective, auto action_of) {
      plan::listed made("pointing", {collective}, 3, {.peer_pointers = true});
      for (int rank = 0; rank < 3; ++rank) made.lane(rank) = {action_of(static_cast<std::uint32_t>(rank))};
      return made;
    };
    check_refused(me, "56 bytes", [&] {
      with_plan(pointing(plan::collective_kind::all_reduce,
                         [](auto) { return plan::load_reduce({0}, plan::inbox(), plan::out(0)); }));
    });
    const auto from_out = pointing(plan::collective_kind::reduce_scatter, [](std::uint32_t rank) {
      return plan::load_reduce({rank}, plan::out(rank), plan::out(rank));  // of peers, whose `out` is another block
    });
    check_refused(me, beyond, [&] {
      hocket::reduce_scatter(comm, std::span(in).first(18), std::span(out).first(6), std::plus<>{},
                             hocket::with(hocket::algorithm(from_out)));
    });
    hocket::barrier(comm);
  });
  CHECK_THROWS_AS(plan::listed("wide", {plan::collective_kind::all_reduce}, 2, {.lanes = 257}), hocket::error);
}

TEST_CASE("the std::error_code forms return the error, throw nothing, and clear the code on success") {
  on_ranks(2, [](thread_rank& me) {
    auto& comm = me.comm();
    std::vector<float> four(4, 1.0F), two(2), eight(8);
    const auto options = hocket::with();
    std::error_code code = hocket::errc::timeout;
    const auto succeeds = [&](const char* what) {
      me.check(!code, std::string(what) + ": " + code.message());
      code = hocket::errc::timeout;
    };
    const auto refuses = [&](const char* what) {
      me.check(code == hocket::errc::invalid_argument, std::string(what) + ": " + code.message());
      code = hocket::errc::timeout;
    };
    std::vector<float> sum(4), out(8);
    const hocket::peer other{1 - me.rank()};
    hocket::all_reduce(comm, four, sum, std::plus<>{}, options, code), succeeds("all_reduce");
    hocket::all_reduce(comm, hocket::in_place(sum), std::plus<>{}, options, code), succeeds("all_reduce in place");
    hocket::reduce_scatter(comm, four, two, std::plus<>{}, options, code), succeeds("reduce_scatter");
    hocket::all_gather(comm, four, out, options, code), succeeds("all_gather");
    hocket::all_to_all(comm, four, sum, options, code), succeeds("all_to_all");
    hocket::broadcast(comm, four, hocket::root{1}, options, code), succeeds("broadcast");
    hocket::barrier(comm, options, code), succeeds("barrier");
    hocket::send_recv(comm, four, other, sum, other, hocket::tag{}, options, code), succeeds("send_recv");
    if (me.rank() == 0) hocket::send(comm, four, other, hocket::tag{}, options, code), succeeds("send");
    if (me.rank() == 1) hocket::recv(comm, sum, other, hocket::tag{}, options, code), succeeds("recv");
    hocket::all_reduce(comm, four, two, std::plus<>{}, options, code), refuses("all_reduce");
    hocket::reduce_scatter(comm, four, four, std::plus<>{}, options, code), refuses("reduce_scatter");
    hocket::all_gather(comm, four, two, options, code), refuses("all_gather");
    hocket::all_to_all(comm, four, two, options, code), refuses("all_to_all");
    hocket::broadcast(comm, four, hocket::root{7}, options, code), refuses("broadcast");
    hocket::send(comm, four, hocket::peer{7}, hocket::tag{}, options, code), refuses("send");
    hocket::recv(comm, four, hocket::peer{7}, hocket::tag{}, options, code), refuses("recv");
    hocket::send_recv(comm, four, other, sum, hocket::peer{7}, hocket::tag{}, options, code), refuses("send_recv");
  });
}

namespace {

/// Rank 1 does not call; the others must soon report a timeout, and their communicator must be revoked.
template <class Call>
void check_missing(const char* name, Call call) {
  on_ranks(3, [&](thread_rank& me) {
    me.at(name);
    if (me.rank() == 1) return;
    const auto begin = std::chrono::steady_clock::now();
    const auto found = me.expect(hocket::errc::timeout, [&] { call(me.comm(), hocket::with(hocket::timeout(50ms))); });
    me.check(std::chrono::steady_clock::now() - begin < 10s, "took far longer than the timeout");
    if (!found) return;
    me.check(mentions(found, name) && mentions(found, "50 ms"),
             [&] { return std::string("unclear: ") + found->what(); });
    me.check(found->context().rank == me.rank() && found->context().ranks == 3, "does not name the rank");
    me.check(found->context().sequence == 1 && found->context().step >= 0, "does not give the step");
    // Only a plan that waits for all ranks, or for the missing neighbour, reveals directly which rank is missing.
    me.check(found->context().peer >= 0 && found->context().peer != me.rank(), "names no peer");
    me.check(me.comm().revoked(), "not revoked");
    const auto next = me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
    me.check(mentions(next, "timed out"), "the next error does not name the cause");
  });
}

}  // namespace

TEST_CASE("a rank that does not call causes a timeout at the deadline, and the communicator is revoked") {
  std::vector<float> in[3], out[3];
  for (int i = 0; i < 3; ++i) in[i].assign(90, 1.0F), out[i].assign(90, 0.0F);
  const auto span_in = [&](const auto& comm, std::size_t n) { return std::span(in[comm.rank()]).first(n); };
  const auto span_out = [&](const auto& comm, std::size_t n) { return std::span(out[comm.rank()]).first(n); };
  check_missing("all_reduce", [&](auto& comm, auto o) {
    hocket::all_reduce(comm, span_in(comm, 1), span_out(comm, 1), std::plus<>{}, o);
  });
  check_missing("all_reduce", [&](auto& comm, auto o) {
    hocket::all_reduce(comm, span_in(comm, 90), span_out(comm, 90), std::plus<>{}, o);
  });
  check_missing("reduce_scatter", [&](auto& comm, auto o) {
    hocket::reduce_scatter(comm, span_in(comm, 90), span_out(comm, 30), std::plus<>{}, o);
  });
  check_missing("all_gather",
                [&](auto& comm, auto o) { hocket::all_gather(comm, span_in(comm, 30), span_out(comm, 90), o); });
  check_missing("all_to_all",
                [&](auto& comm, auto o) { hocket::all_to_all(comm, span_in(comm, 90), span_out(comm, 90), o); });
  check_missing("broadcast", [&](auto& comm, auto o) {
    hocket::broadcast(comm, span_out(comm, 90), hocket::root{1}, hocket::with(hocket::direct, hocket::timeout(50ms)));
    static_cast<void>(o);
  });
  check_missing("barrier", [](auto& comm, auto o) { hocket::barrier(comm, o); });
}

TEST_CASE("if the plan waits for all ranks, the timeout names the missing one") {
  for (const int missing : {0, 2, 4}) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{1000}}) {
      std::vector<std::vector<float>> in(5, std::vector<float>(size)), out(5, std::vector<float>(size));
      on_ranks(5, [&](thread_rank& me) {
        if (me.rank() == missing) return;
        const auto r = static_cast<std::size_t>(me.rank());
        const auto found = me.expect(hocket::errc::timeout, [&] {
          hocket::all_reduce(me.comm(), in[r], out[r], std::plus<>{}, hocket::with(hocket::timeout(50ms)));
        });
        me.check(found && found->context().peer == missing, [&] {
          return "expected an error that names rank " + std::to_string(missing) + ": " + (found ? found->what() : "");
        });
      });
    }
  }
}

TEST_CASE("a message that is never sent causes a timeout that names the sender") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    int value = 0;
    const auto found = me.expect(hocket::errc::timeout, [&] {
      hocket::recv(me.comm(), std::span(&value, 1), hocket::peer{1}, hocket::tag{3},
                   hocket::with(hocket::timeout(20ms)));
    });
    me.check(mentions(found, "recv") && found->context().peer == 1, "does not name the sender");
  });
}

TEST_CASE("the communicator's timeout applies if the call sets none") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    me.comm().set_timeout(20ms);
    const auto begin = std::chrono::steady_clock::now();
    const auto found = me.expect(hocket::errc::timeout, [&] { hocket::barrier(me.comm()); });
    me.check(mentions(found, "20 ms"), "gives another duration");
    me.check(std::chrono::steady_clock::now() - begin < 10s, "took far longer");
  });
}

namespace {

/// Rank 0 calls `one`, the others `other`: errors must be `mismatch` or `timeout`, and at least one is a mismatch.
template <class One, class Other>
void check_mismatch(const char* name, One one, Other other) {
  std::atomic<int> noticed{0};
  std::vector<float> in(400, 1.0F);
  std::vector<std::vector<float>> out(3, std::vector<float>(400));
  on_ranks(3, [&](thread_rank& me) {
    me.at(name);
    auto& own = out[static_cast<std::size_t>(me.rank())];
    try {
      if (me.rank() == 0) {
        one(me.comm(), in, own);
      } else {
        other(me.comm(), in, own);
      }
    } catch (const hocket::error& found) {
      const bool right = found.code() == hocket::errc::mismatch || found.code() == hocket::errc::timeout;
      me.check(right, std::string("another error: ") + found.what());
      if (found.code() == hocket::errc::mismatch) {
        noticed.fetch_add(1);
        me.check(found.context().peer >= 0, "names no peer");
        me.check(me.comm().revoked(), "not revoked");
      }
    }
  });
  INFO(name);
  CHECK(noticed.load() > 0);
}

/// all_reduce of the first `size` elements.
template <class Op, class... Properties>
auto reduce_first(std::size_t size, Op op, Properties... properties) {
  return [=](auto& comm, const std::vector<float>& in, std::vector<float>& out) {
    hocket::all_reduce(comm, std::span(in).first(size), std::span(out).first(size), op,
                       hocket::with(hocket::timeout(100ms), properties...));
  };
}

}  // namespace

TEST_CASE("calls that do not match across ranks are reported as a mismatch on at least one rank") {
  const auto sum = std::plus<>{};
  check_mismatch("counts of one line", reduce_first(1, sum), reduce_first(2, sum));
  check_mismatch("counts", reduce_first(300, sum, hocket::one_shot), reduce_first(301, sum, hocket::one_shot));
  check_mismatch("counts of messages", reduce_first(300, sum, hocket::ring), reduce_first(360, sum, hocket::ring));
  check_mismatch("operations", reduce_first(1, sum), reduce_first(1, hocket::maximum{}));
  check_mismatch("operations of many", reduce_first(300, sum, hocket::two_shot),
                 reduce_first(300, hocket::maximum{}, hocket::two_shot));
  check_mismatch("algorithms", reduce_first(300, sum, hocket::two_shot), reduce_first(300, sum, hocket::one_shot));
  for (const std::size_t size : {1U, 3U, 100U}) {
    check_mismatch("pieces of an algorithm", reduce_first(size, sum, hocket::double_tree(3)),
                   reduce_first(size, sum, hocket::double_tree(6)));
  }
  check_mismatch("types", reduce_first(2, sum), [](auto& comm, const std::vector<float>&, std::vector<float>&) {
    const double one[1] = {1};
    double result[1];
    hocket::all_reduce(comm, one, result, std::plus<>{}, hocket::with(hocket::timeout(100ms)));
  });
  const auto broadcast_from = [](int root) {
    return [root](auto& comm, const std::vector<float>&, std::vector<float>& out) {
      hocket::broadcast(comm, out, hocket::root{root}, hocket::with(hocket::direct, hocket::timeout(100ms)));
    };
  };
  check_mismatch("collectives", reduce_first(300, sum, hocket::one_shot), broadcast_from(0));
}

TEST_CASE("a message of another size than expected is an error on the receiver") {
  on_ranks(2, [](thread_rank& me) {
    std::vector<int> five(5), six(6);
    if (me.rank() == 0) return hocket::send(me.comm(), five, hocket::peer{1});
    const auto found = me.expect(hocket::errc::mismatch, [&] { hocket::recv(me.comm(), six, hocket::peer{0}); });
    me.check(mentions(found, "20 bytes where 24 were expected"), "does not give the sizes");
  });
  on_ranks(2, [](thread_rank& me) {
    std::vector<int> five(5), six(6);
    if (me.rank() == 0) return hocket::send(me.comm(), six, hocket::peer{1});
    const auto found = me.expect(hocket::errc::truncated, [&] { hocket::recv(me.comm(), five, hocket::peer{0}); });
    me.check(mentions(found, "24 bytes where 20 were expected"), "does not give the sizes");
  });
}

TEST_CASE("abort from another thread ends a wait, and later calls fail") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    std::thread other([&] {
      std::this_thread::sleep_for(20ms);
      me.comm().abort();
    });
    me.expect(hocket::errc::aborted, [&] { hocket::barrier(me.comm()); });
    other.join();
    me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
  });
}

TEST_CASE("no call starts after an abort, or with a stop token that was triggered before") {
  const auto check = [](std::size_t size) {
    on_ranks(1, [size](thread_rank& me) {
      std::vector<float> data(size);
      me.comm().abort();
      me.expect(hocket::errc::aborted, [&] { hocket::all_reduce(me.comm(), hocket::in_place(data)); });
      me.expect(hocket::errc::revoked, [&] { hocket::all_reduce(me.comm(), hocket::in_place(data)); });
    });
    on_ranks(3, [size](thread_rank& me) {
      std::vector<float> data(size);
      me.comm().abort();
      me.expect(hocket::errc::aborted, [&] { hocket::all_reduce(me.comm(), hocket::in_place(data)); });
    });
    on_ranks(2, [size](thread_rank& me) {
      std::vector<float> data(size);
      std::stop_source stop;
      stop.request_stop();
      me.expect(hocket::errc::aborted, [&] {
        hocket::all_reduce(me.comm(), hocket::in_place(data), std::plus<>{}, hocket::with(stop.get_token()));
      });
      me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
    });
  };
  check(4);
  check(1000);
}

namespace {

struct throwing_sum {
  float operator()(float, float) const { throw std::runtime_error("no sums today"); }
};

}  // namespace

TEST_CASE("an operation that throws fails the call, and the error contains the text of the exception") {
  for (const std::size_t size : {4U, 1000U}) {
    on_ranks(2, [size](thread_rank& me) {
      std::vector<float> data(size);
      const auto found = me.expect(hocket::errc::invalid_argument,
                                   [&] { hocket::all_reduce(me.comm(), hocket::in_place(data), throwing_sum{}); });
      me.check(mentions(found, "no sums today"), "does not contain the text of the exception");
      me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
    });
    on_ranks(2, [size](thread_rank& me) {
      std::vector<float> data(size);
      me.expect(hocket::errc::invalid_argument, [&] {
        hocket::request sum = hocket::all_reduce_async(me.comm(), hocket::in_place(data), throwing_sum{});
        sum.wait();
      });
    });
  }
}

TEST_CASE("a stop token ends the call that it was passed to") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) return;
    std::stop_source stop;
    std::thread other([&] {
      std::this_thread::sleep_for(20ms);
      stop.request_stop();
    });
    float value = 1, sum = 0;
    const auto found = me.expect(hocket::errc::aborted, [&] {
      hocket::all_reduce(me.comm(), std::span(&value, 1), std::span(&sum, 1), std::plus<>{},
                         hocket::with(stop.get_token()));
    });
    me.check(mentions(found, "stop token"), "does not name the stop token");
    other.join();
  });
}

TEST_CASE("an exception in one rank's body ends local::run, which throws it again") {
  const auto begin = std::chrono::steady_clock::now();
  std::atomic<int> ended{0};
  CHECK_THROWS_WITH(hocket::local::run(3,
                                       [&](auto comm) {
                                         if (comm.rank() == 1) throw std::runtime_error("rank 1 had enough");
                                         std::error_code code;
                                         hocket::barrier(comm, hocket::with(), code);
                                         if (code == hocket::errc::peer_lost) ended.fetch_add(1);
                                       }),
                    "rank 1 had enough");
  CHECK(std::chrono::steady_clock::now() - begin < 10s);
  CHECK(ended.load() == 2);
}

TEST_CASE("local::run refuses zero and negative numbers of ranks") {
  CHECK_THROWS_AS(hocket::local::run(0, [](auto) {}), hocket::error);
  CHECK_THROWS_AS(hocket::local::run(-3, [](auto) {}), hocket::error);
}

TEST_CASE("a second thread on a communicator is refused, and the call of the first succeeds") {
  for (const std::size_t size : {2U, 1000U}) {
    on_ranks(2, [size](thread_rank& me) {
      std::vector<float> data(size, 1.0F);
      if (me.rank() == 0) {
        std::atomic<bool> begun{false};
        std::thread other([&] {
          while (!begun.load()) std::this_thread::yield();
          std::this_thread::sleep_for(20ms);
          std::vector<float> more(size, 1.0F);
          const auto found =
              me.expect(hocket::errc::concurrent_use, [&] { hocket::all_reduce(me.comm(), hocket::in_place(more)); });
          me.check(mentions(found, "split"), "gives no advice");
          me.expect(hocket::errc::concurrent_use, [&] {
            hocket::request begun_too = hocket::all_reduce_async(me.comm(), hocket::in_place(more));
            begun_too.wait();
          });
          me.expect(hocket::errc::concurrent_use, [&] { me.comm().revoke("from another thread"); });
        });
        begun.store(true);
        hocket::all_reduce(me.comm(), hocket::in_place(data));
        other.join();
      } else {
        std::this_thread::sleep_for(200ms);
        hocket::all_reduce(me.comm(), hocket::in_place(data));
      }
      me.check(data[0] == 2.0F && !me.comm().revoked(), "the call of the first thread failed");
      hocket::barrier(me.comm());
    });
  }
}

TEST_CASE("waiting for a request from a second thread is refused, and the request can be waited for later") {
  on_ranks(2, [](thread_rank& me) {
    const std::vector<float> in(1000, 1.0F);
    std::vector<float> out(in.size());
    int word = 1;
    if (me.rank() == 0) {
      hocket::request pending = hocket::all_reduce_async(me.comm(), in, out);
      std::thread other([&] {
        std::this_thread::sleep_for(50ms);
        const auto found = me.expect(hocket::errc::concurrent_use, [&] { pending.wait(); });
        me.check(mentions(found, "split"), "gives no advice");
        me.check(!pending.test(), "is reported as complete");
      });
      hocket::recv(me.comm(), std::span(&word, 1), hocket::peer{1});
      other.join();
      pending.wait();
      me.check(pending.test() && !pending.error(), "has not succeeded");
    } else {
      std::this_thread::sleep_for(200ms);
      hocket::send(me.comm(), std::span(&word, 1), hocket::peer{0});
      hocket::all_reduce(me.comm(), in, out);
    }
    me.check(out[0] == 2.0F && !me.comm().revoked(), "the operation failed");
    hocket::barrier(me.comm());
  });
}

#if HOCKET_ASSERTION_LEVEL > 0
TEST_CASE("a communicator that was moved from is refused, also by the std::error_code forms") {
  on_ranks(2, [](thread_rank& me) {
    auto old = hocket::split(me.comm(), hocket::color{0});
    const auto moved = std::move(old);
    std::vector<float> in(4), out(4);
    const auto says = [&](const char* operation, auto call) {
      const auto found = me.expect(hocket::errc::invalid_argument, call);
      me.check(mentions(found, "was moved from: use the one"), operation);
      me.check(mentions(found, operation), operation);
    };
    says("all_reduce", [&] { hocket::all_reduce(old, in, out); });
    says("all_gather", [&] { hocket::all_gather(old, in, out); });
    says("barrier", [&] { hocket::barrier(old); });
    says("send", [&] { hocket::send(old, in, hocket::peer{0}); });
    says("split", [&] { hocket::split(old, hocket::color{0}); });
    says("", [&] { hocket::all_reduce_async(old, in, out).wait(); });
    says("", [&] { hocket::shrink(old); });
    const auto gives = [&](auto call) {
      std::error_code code;
      call(code);
      me.check(code == hocket::errc::invalid_argument, "the code of a call on a communicator that was moved from");
    };
    gives([&](auto& code) { hocket::all_reduce(old, in, out, std::plus<>{}, hocket::with(), code); });
    gives([&](auto& code) { hocket::broadcast(old, in, hocket::root{0}, hocket::with(), code); });
    gives([&](auto& code) { hocket::recv(old, in, hocket::peer{1}, hocket::tag{0}, hocket::with(), code); });
    hocket::barrier(moved);
    old = hocket::split(moved, hocket::color{0});
    hocket::barrier(old);
  });
}
#endif
