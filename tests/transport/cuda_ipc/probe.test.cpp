// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The probe finds reachable memory by copies. All ranks get the same table, and all resources are released.
#include "support/catch.hpp"
#include "support/text.hpp"
#include "transport/cuda_ipc/processes.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <hocket/transport/cuda_ipc/probe.hpp>

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

namespace ipc = hocket::cuda_ipc;
using hocket_test::contains;
using hocket_test::host_machine;
using hocket_test::processes;
using hocket_test::where_rank_runs;
using ipc::status;

namespace {

/// Runs the probe on all ranks, checks that they get the same table, and returns it.
ipc::reach probed(processes& all, std::chrono::nanoseconds limit = std::chrono::seconds(20)) {
  std::vector<ipc::reach> found(all.size());
  all.run([&](std::size_t rank) {
    found[rank] = ipc::probe(all.place(rank), all.driver(rank).mark(), static_cast<int>(rank), all.size(),
                             all.exchange(rank), hocket::deadline::after(limit));
  });
  const int ranks = static_cast<int>(all.size());
  for (const ipc::reach& each : found) {
    for (int a = 0; a < ranks; ++a) {
      for (int b = 0; b < ranks; ++b) {
        CHECK(each.why_not(a, b) == found[0].why_not(a, b));
        CHECK(each.why_not(a, b) == each.why_not(b, a));
      }
    }
  }
  return found[0];
}

}  // namespace

TEST_CASE("processes on one device, and on several, reach each other") {
  for (std::size_t ranks = 1; ranks <= 5; ++ranks) {
    host_machine machine(3);
    std::vector<where_rank_runs> where;
    for (std::size_t i = 0; i < ranks; ++i) where.push_back({static_cast<int>(i), static_cast<int>(i % 3)});
    processes all(machine, where);
    const ipc::reach found = probed(all);
    CHECK(found.complete());
    for (std::size_t i = 0; i < ranks; ++i) CHECK(all.driver(i).opens == static_cast<int>(ranks) - 1);
    hocket_test::check_clean(machine, all);
  }
}

TEST_CASE("threads of one process open nothing of each other, and each pair of processes and devices is tested once") {
  host_machine machine(2);
  // Two processes with two threads on one device each, and a thread of the first process on the other device.
  processes all(machine, {{1, 0}, {1, 0}, {2, 0}, {2, 0}, {1, 1}});
  CHECK(probed(all).complete());
  CHECK(all.driver(0).opens == 1);  // of rank 2
  CHECK(all.driver(1).opens == 0);  // rank 0 tests for it
  CHECK(all.driver(2).opens == 2);  // of ranks 0 and 4
  CHECK(all.driver(3).opens == 0);
  CHECK(all.driver(4).opens == 1);  // of rank 2
  hocket_test::check_clean(machine, all);
}

TEST_CASE("a driver that copies wrong bytes is detected on either side") {
  for (const std::size_t liar : {std::size_t{0}, std::size_t{2}}) {
    host_machine machine;
    processes all(machine, {{1, 0}, {1, 0}, {2, 0}});
    all.driver(liar).spoil_reads();
    const ipc::reach found = probed(all);
    CHECK_FALSE(found.complete());
    CHECK(found.why_not(0, 1).empty());  // one process
    CHECK(contains(found.why_not(0, 2), "rank " + std::to_string(liar) + " can't reach"));
    CHECK(contains(found.why_not(0, 2), "has wrong bytes"));
    CHECK(found.why_not(1, 2) == found.why_not(0, 2));
    hocket_test::check_clean(machine, all);
  }
}

TEST_CASE("lost writes are detected on either side") {
  for (const std::size_t loser : {std::size_t{0}, std::size_t{1}}) {
    host_machine machine;
    processes all(machine, {{1, 0}, {2, 0}});
    all.driver(loser).lose_writes();
    const ipc::reach found = probed(all);
    CHECK(contains(found.why_not(0, 1), "rank " + std::to_string(loser) + " can't reach"));
    CHECK(contains(found.why_not(0, 1), "did not arrive"));
    hocket_test::check_clean(machine, all);
  }
}

TEST_CASE("devices of one process without peer access are not reachable") {
  host_machine machine(2);
  machine.peer_access = false;
  processes all(machine, {{1, 0}, {1, 1}});
  const ipc::reach found = probed(all);
  CHECK(contains(found.why_not(0, 1), "enabling access between two devices"));
  hocket_test::check_clean(machine, all);
}

TEST_CASE("a rank whose memory has no handle is named, and the other ranks reach each other") {
  host_machine machine;
  processes all(machine, {{1, 0}, {2, 0}, {3, 0}});
  all.driver(1).pool_memory(true);
  const ipc::reach found = probed(all);
  CHECK(found.why_not(0, 2).empty());
  CHECK(contains(found.why_not(0, 1), "rank 1: it can't provide test memory"));
  CHECK(contains(found.why_not(2, 1), "expandable_segments"));
  hocket_test::check_clean(machine, all);
}

TEST_CASE("a copy that does not end leads to a reason within the time limit, and its memory is not freed") {
  host_machine machine;
  processes all(machine, {{1, 0}, {2, 0}, {3, 0}});
  all.driver(2).stop_streams();
  const ipc::reach found = probed(all, std::chrono::milliseconds(50));
  CHECK(found.why_not(0, 1).empty());
  CHECK(contains(found.why_not(0, 2), "did not end"));
  CHECK(all.driver(2).streams() == 1);
  CHECK(all.driver(2).pinned() == 1);
  CHECK(machine.allocated() == 1);
  CHECK(machine.freed_while_open == 0);
}

TEST_CASE("the mapping of a copy from a peer that does not end is not closed") {
  host_machine machine;
  processes all(machine, {{1, 0}, {2, 0}});
  all.driver(1).stop_streams(1);  // after the first copy, which fills the rank's own memory
  const ipc::reach found = probed(all, std::chrono::milliseconds(50));
  CHECK(contains(found.why_not(0, 1), "rank 1 can't reach the device memory of rank 0"));
  CHECK(all.driver(1).opens == 1);
  CHECK(all.driver(1).closes == 0);
  CHECK(machine.freed_while_open == 0);
}

TEST_CASE("if any call fails with any code, all ranks get the same table, which is complete or has a reason") {
  for (const status code : hocket_test::every_code()) {
    for (int call = 0;; ++call) {
      host_machine machine(2);
      processes all(machine, {{1, 0}, {2, 0}});
      all.driver(1).inject(call, code);
      const ipc::reach found = probed(all);
      const bool failed = all.driver(1).has_failed();
      INFO("call " << call << ", " << all.driver(1).failed_call() << ", code " << static_cast<int>(code));
      if (!failed) CHECK(found.complete());
      if (!found.complete()) CHECK(contains(found.why_not(0, 1), "rank 1"));
      if (failed && found.complete()) CHECK(hocket_test::may_fail_silently(all.driver(1), code));
      if (!found.complete()) CHECK(contains(found.why_not(0, 1), hocket_test::words_for_failed(all.driver(1), code)));
      hocket_test::check_clean(machine, all);
      if (!failed) {
        CHECK(call > 30);
        break;
      }
    }
  }
}

TEST_CASE("a call that fails on a thread leaves no leak, and two other ranks reach each other") {
  for (const status code : {status::out_of_memory, status::not_ready, status::peer_access_already_enabled,
                            status::illegal_address, status::unknown}) {
    for (int call = 0;; ++call) {
      host_machine machine(2);
      processes all(machine, {{1, 0}, {1, 1}, {2, 0}});
      all.driver(0).inject(call, code);
      const ipc::reach found = probed(all);
      INFO("call " << call << ", " << all.driver(0).failed_call() << ", code " << static_cast<int>(code));
      CHECK(found.why_not(1, 2).empty());
      if (found.complete() && all.driver(0).has_failed()) CHECK(hocket_test::may_fail_silently(all.driver(0), code));
      hocket_test::check_clean(machine, all);
      if (!all.driver(0).has_failed()) {
        CHECK(found.complete());
        break;
      }
    }
  }
}

TEST_CASE("invalid blobs from ranks lead to reasons") {
  std::string why;
  for (std::size_t size = 0; size < 300; ++size) {
    const std::vector<std::byte> nonsense(size, std::byte{'x'});
    why.clear();
    CHECK_FALSE(ipc::detail::decode_offer(nonsense, 4096, why));
    CHECK_FALSE(why.empty());
    for (const std::string& each : ipc::detail::decode_reasons(nonsense, 3)) CHECK_FALSE(each.empty());
    const std::string text(size, 'x');
    CHECK_FALSE(ipc::detail::decode_offer(ipc::detail::encode_refusal(text), 4096, why));
    CHECK(why == text);
  }
  const std::vector<std::string> reasons{"", "because", "x"};
  CHECK(ipc::detail::decode_reasons(ipc::detail::encode_reasons(reasons), 3) == reasons);
}
