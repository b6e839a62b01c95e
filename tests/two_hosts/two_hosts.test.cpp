// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Tests ranks on two hosts, over a link that works, fails during a call, or delays and loses packets.
#include "support/catch.hpp"
#include "two_hosts/hosts.hpp"

#include <hocket/group/split.hpp>
#include <hocket/transport/ucx/process_identity.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace two_hosts;
using namespace ucx_test;
using hocket::errc;
using hocket::with;
using clock = std::chrono::steady_clock;

double seconds_since(clock::time_point begin) { return std::chrono::duration<double>(clock::now() - begin).count(); }

/// Prints a line on rank 0, for readers of the test's output.
template <class... Values>
void report(const communicator& comm, const char* format, Values... values) {
  if (comm.rank() == 0) std::printf(format, values...);
}

void check_collectives(const communicator& comm, findings& found) {
  const auto ranks = static_cast<std::size_t>(comm.size());
  const auto rank = static_cast<std::size_t>(comm.rank());
  for (const std::size_t size : {std::size_t{1}, std::size_t{999}, std::size_t{100'000}}) {
    const std::string of = " of " + std::to_string(size);
    const auto own = vector_of(comm.rank(), size);
    std::vector<std::uint64_t> out(size);
    const auto check_sum = [&](auto options) {
      hocket::all_reduce(comm, own, out, std::plus<>{}, options);
      found.equal(out, sum_of(comm.size(), size), "all_reduce" + of);
    };
    check_sum(with());
    check_sum(with(hocket::ring));
    check_sum(with(hocket::recursive_doubling));
    check_sum(with(hocket::halving_doubling));
    check_sum(with(hocket::double_tree));
    for (int root = 0; root < comm.size(); ++root) {
      out = own;
      hocket::broadcast(comm, out, hocket::root{root});
      found.equal(out, vector_of(root, size), "broadcast" + of);
    }

    const auto whole = vector_of(comm.rank(), size * ranks);
    const auto sum = sum_of(comm.size(), size * ranks);
    std::vector<std::uint64_t> all, for_me, many(size * ranks);
    for (int peer = 0; peer < comm.size(); ++peer) {
      for (std::size_t i = 0; i < size; ++i) all.push_back(element(peer, i));
      for (std::size_t i = 0; i < size; ++i) for_me.push_back(element(peer, rank * size + i));
    }
    hocket::all_gather(comm, own, many);
    found.equal(many, all, "all_gather" + of);
    hocket::all_to_all(comm, whole, many);
    found.equal(many, for_me, "all_to_all" + of);
    hocket::reduce_scatter(comm, whole, out);
    found.expect(std::equal(out.begin(), out.end(), sum.begin() + static_cast<std::ptrdiff_t>(rank * size)),
                 "reduce_scatter" + of);
    hocket::barrier(comm);
  }
}

/// Checks that ranks on one host use its shared memory, and ranks on different hosts tcp.
void check_ways(const communicator& comm, const shape& form, findings& found) {
  const auto own = hocket::ucx::own_identity();
  std::vector<hocket::ucx::process_identity> all(static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, std::span(&own, 1), all);
  auto& domain = *hocket::detail::communicator_access::state(comm).domain();
  for (int peer = 0; peer < comm.size(); ++peer) {
    if (peer == comm.rank()) continue;
    const bool together = form.host_of(peer) == form.host_of(comm.rank());
    const std::string whom = "rank " + std::to_string(peer);
    const auto& theirs = all[static_cast<std::size_t>(peer)];
    found.equal(own.may_share_memory(theirs), together, "memory is shared with " + whom);
    found.equal(own.can_watch(theirs), together, "the process can be watched: " + whom);
    const auto lanes = domain.transports_to(peer);
    found.expect(!lanes.empty(), "no transport to " + whom);
    for (const std::string& lane : lanes) found.equal(lane != "tcp", together, "to " + whom + ": " + lane);
  }
  found.expect(!has_windows(comm), "the memory of another host counts as reachable");
  const auto neighbours = hocket::split(comm, hocket::color{form.host_of(comm.rank())});
  found.expect(has_windows(neighbours), "the memory of a neighbour can't be reached");
  const int one = 1;
  int sum = 0;
  hocket::all_reduce(neighbours, std::span(&one, 1), std::span(&sum, 1));
  found.equal(sum, neighbours.size(), "ranks of this host");
}

/// A failure of the link.
struct cut {
  const char* name;
  shape form;
  bool unplugged;      ///< the interface of one side loses its carrier; if false, packets are lost without a sign
  bool all_have_met;   ///< all ranks are connected; if false, only neighbours in a ring
  bool keep_the_lost;  ///< the failed communicator exists until the next one works
};

void connect_all(const communicator& comm) {
  std::vector<int> in(static_cast<std::size_t>(comm.size())), out(in.size());
  hocket::all_to_all(comm, in, out, with(hocket::pairwise));
}

/// Calls all_reduce until it fails. Expects this soon after its deadline, and that it names a rank of the other side.
void expect_cut(const communicator& comm, const cut& what, findings& found) {
  constexpr auto timeout = 2s;
  const auto own = vector_of(comm.rank(), 500'000);
  std::vector<std::uint64_t> out(own.size());
  const auto begin = clock::now();
  try {
    for (;;) hocket::all_reduce(comm, own, out, std::plus<>{}, with(hocket::ring, hocket::timeout(timeout)));
  } catch (const hocket::error& cause) {
    const int blamed = cause.context().peer;
    report(comm, "%s: after %.2f s: %s\n", what.name, seconds_since(begin), cause.what());
    found.expect(cause.code() == errc::timeout || cause.code() == errc::unreachable,
                 std::string("the error is neither timeout nor unreachable: ") + cause.what());
    found.expect(blamed >= 0 && what.form.host_of(blamed) != what.form.host_of(comm.rank()),
                 std::string("the error does not name a rank of the other side: ") + cause.what());
  }
  found.expect(clock::now() - begin < timeout + 8s, "the call ended long after its deadline");
  found.fails(errc::revoked, "the next call", [&] { hocket::barrier(comm); });
}

std::string while_cut(const cut& what) {
  return run(what.form, [&](const world& where, findings& found, blackboard& board) {
    auto comm = std::make_optional(hocket::ucx::connect(where));
    if (what.all_have_met) connect_all(*comm);
    std::vector<std::uint64_t> data(1000);
    hocket::all_reduce(*comm, hocket::in_place(data), std::plus<>{}, with(hocket::ring));
    board.meet(where.ranks, 1);
    if (where.rank == 0) {
      what.unplugged ? board.cable.plugged.store(false) : board.cable.cut_after(30);
    }
    expect_cut(*comm, what, found);
    const auto end_of = [&](auto& lost) {
      const auto begin = clock::now();
      lost.reset();
      found.expect(clock::now() - begin < 5s, "the destructor of a communicator took more than five seconds");
    };
    if (!what.keep_the_lost) end_of(comm);
    board.meet(where.ranks, 2);
    board.cable.plugged.store(true);
    board.cable.repair();

    world next = where;
    ++next.port;
    const auto begin = clock::now();
    const auto again = hocket::ucx::connect(next);
    report(again, "%s: connected again after %.2f s\n", what.name, seconds_since(begin));
    check_ways(again, what.form, found);
    check_collectives(again, found);
    if (what.keep_the_lost) end_of(comm);
    hocket::barrier(again);
  });
}

/// Runs `body()` in a container: with separate process numbers, of which some are already in use.
template <class Body>
int in_container(int used_numbers, Body body) {
  detail::need(::unshare(CLONE_NEWPID | CLONE_NEWNS) == 0, "make namespaces");
  return detail::run_forked([&] {
    detail::need(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0, "keep mounts private");
    detail::need(::mount("proc", "/proc", "proc", 0, nullptr) == 0, "mount /proc");
    for (int i = 0; i < used_numbers; ++i) detail::run_forked([] { return 0; });
    return detail::run_forked(body);
  });
}

}  // namespace

TEST_CASE("collectives on two hosts return correct results, over tcp between hosts and shared memory on each host") {
  if (cannot_run()) return;
  for (const shape& form : {shape{{1, 1}}, shape{{1, 2}}, shape{{2, 2}}}) {
    INFO(form.ranks_on[0] << " and " << form.ranks_on[1] << " ranks");
    CHECK(run(form, [&](const world& where, findings& found, blackboard&) {
            const auto comm = hocket::ucx::connect(where);
            check_ways(comm, form, found);
            check_collectives(comm, found);
          }) == "");
  }
}

TEST_CASE("a call fails on both sides if the link fails, and the ranks can connect again when it works") {
  if (cannot_run()) return;
  CHECK(while_cut({"all ranks connected, 2 and 2 ranks", {{2, 2}}, false, true, false}) == "");
  // A message to a rank that this rank has never sent to needs a connection, for which the call must not wait either.
  CHECK(while_cut({"only neighbours connected, 2 and 2 ranks", {{2, 2}}, false, false, false}) == "");
  CHECK(while_cut({"unplugged, 1 and 2 ranks", {{1, 2}}, true, true, true}) == "");
}

TEST_CASE("connect times out and names the missing rank if the link fails before") {
  if (cannot_run()) return;
  const shape form{{2, 1}};
  CHECK(run(form, [&](const world& where, findings& found, blackboard& board) {
          board.cable.cut_after(0);
          board.meet(where.ranks, 1);
          hocket::ucx::connect_options options;
          options.timeout = 1s;
          const auto begin = clock::now();
          const auto cause = found.fails(errc::timeout, "connect", [&] { hocket::ucx::connect(where, options); });
          found.expect(clock::now() - begin < 5s, "connect took longer than its timeout");
          const int missing = where.rank == 2 ? 0 : 2;
          found.equal(cause.context.peer, missing, "the missing rank");
        }) == "");
}

TEST_CASE("collectives return correct results if packets are delayed or lost, or the link fails for a short time") {
  if (cannot_run()) return;
  const shape form{{2, 2}};
  CHECK(run(form, [&](const world& where, findings& found, blackboard& board) {
          const auto comm = hocket::ucx::connect(where);
          int round = 0;
          // Changes the settings of the cable between two calls of all ranks.
          const auto set = [&](auto change) {
            board.meet(where.ranks, ++round);
            if (where.rank == 0) change(board.cable);
            board.meet(where.ranks, ++round);
          };
          const auto time_of = [&](const char* what, auto act) {
            const auto begin = clock::now();
            act();
            report(comm, "%s: %.0f ms\n", what, 1000 * seconds_since(begin));
            return clock::now() - begin;
          };
          const auto check = [&] { check_collectives(comm, found); };
          const auto barriers = [&] {
            for (int i = 0; i < 20; ++i) hocket::barrier(comm);
          };

          set([](cable_settings&) {});
          time_of("collectives over a good link", check);
          time_of("20 barriers over a good link", barriers);

          set([](cable_settings& link) { link.delay_microseconds = 10'000; });
          found.expect(time_of("20 barriers, packets delayed by 10 ms", barriers) >= 200ms, "packets were not delayed");

          set([](cable_settings& link) {
            link.delay_microseconds = 1000;
            link.lost_per_mille = 20;
          });
          const auto lost_before = board.cable.lost.load();
          time_of("collectives, packets delayed by 1 ms and 2 % lost", check);
          hocket::barrier(comm);
          const auto lost = board.cable.lost.load() - lost_before;
          report(comm, "%lu packets lost\n", static_cast<unsigned long>(lost));
          found.expect(lost > 0, "no packet was lost");

          set([](cable_settings& link) {
            link.delay_microseconds = 0;
            link.lost_per_mille = 0;
            link.cut_after(30);
          });
          std::thread helper([&] {
            if (where.rank != 0) return;
            blackboard::wait_until([&] { return board.cable.packets_left.load() == 0; }, "the link was not cut");
            std::this_thread::sleep_for(300ms);
            board.cable.repair();
          });
          const auto took = time_of("collectives, the link cut for 0.3 s", [&] {
            check();
            hocket::barrier(comm);
          });
          helper.join();
          found.expect(took >= 300ms, "the cut did not delay the calls");
        }) == "");
}

TEST_CASE("ranks on the other host detect a killed rank within 3 s, even if a program that it has started still runs") {
  if (cannot_run()) return;
  const shape form{{2, 1}};
  CHECK(run(form, [](const world& where, findings& found, blackboard& board) {
          const int status = two_hosts::detail::run_forked([&] {
            findings inside("rank " + std::to_string(where.rank));
            const auto comm = hocket::ucx::connect(where);
            connect_all(comm);
            check_collectives(comm, inside);
            if (comm.rank() == 2) {
              two_hosts::detail::run_command("sleep 20 </dev/null >/dev/null 2>&1 &");
              ::raise(SIGKILL);
            }
            const auto begin = clock::now();
            const auto cause = inside.fails(errc::peer_lost, "barrier", [&] {
              for (;;) hocket::barrier(comm);
            });
            report(comm, "with a program still running: after %.2f s: %s\n", seconds_since(begin),
                   cause.reason.c_str());
            inside.equal(cause.context.peer, 2, "rank named by the error");
            inside.expect(clock::now() - begin < 3s, "it took more than three seconds");
            return inside.any() ? 1 : 0;
          });
          found.equal(status, where.rank == 2 ? 128 + SIGKILL : 0, "status");
          board.meet(where.ranks, 1);  // programs that this process has started end with it
        }) == "");
}

TEST_CASE("containers with shared memory and separate process numbers exchange messages and detect a killed rank") {
  if (cannot_run()) return;
  const auto results = results_of(2, shared_memory, [](const world& where, findings& found) {
    const int status = in_container(where.rank * 5, [&] {
      findings inside("rank " + std::to_string(where.rank));
      const auto comm = hocket::ucx::connect(where);
      const auto begin = clock::now();
      for (int go_on = 1; go_on != 0;) {  // longer than UCX takes to check its peers
        check_collectives(comm, inside);
        go_on = comm.rank() == 0 && clock::now() - begin < 1s;
        hocket::broadcast(comm, std::span(&go_on, 1), hocket::root{0});
      }
      if (comm.rank() == 1) ::raise(SIGKILL);
      const auto cause = inside.fails(errc::peer_lost, "barrier", [&] {
        for (;;) hocket::barrier(comm);
      });
      inside.equal(cause.context.peer, 1, "rank named by the error");
      return inside.any() ? 1 : 0;
    });
    found.equal(status, where.rank == 1 ? 128 + SIGKILL : 0, "status");
  });
  CHECK(hocket::launch::describe_failures(results) == "");
}
