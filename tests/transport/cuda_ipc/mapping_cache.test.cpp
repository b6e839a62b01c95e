// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Mappings of peers' memory are opened once, reused only while their allocation exists, and closed as often as opened.
#include "support/catch.hpp"
#include "support/text.hpp"
#include "transport/cuda_ipc/host_driver.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <hocket/transport/cuda_ipc/mapping_cache.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace ipc = hocket::cuda_ipc;
using hocket_test::host_driver;
using hocket_test::host_machine;
using ipc::status;
using cache = ipc::mapping_cache<host_driver>;

namespace {

ipc::address allocated(host_driver& by, std::size_t size) {
  ipc::address base = 0;
  REQUIRE(by.mem_alloc(&base, size) == status::success);
  return base;
}

ipc::memory_handle described(host_driver& by, ipc::address at, std::size_t size) {
  ipc::memory_handle result;
  REQUIRE_FALSE(ipc::describe(by, at, size, by.mark(), result));
  return result;
}

void put(ipc::address at, std::uint32_t value) { *reinterpret_cast<volatile std::uint32_t*>(at) = value; }
std::uint32_t get(ipc::address at) { return *reinterpret_cast<volatile std::uint32_t*>(at); }

ipc::context_handle context_of(host_driver& of) {
  ipc::context_handle result = nullptr;
  REQUIRE(of.ctx_get_current(&result) == status::success);
  return result;
}

/// Two processes on one device, the second with a cache.
struct pair_of_processes {
  host_machine machine;
  host_driver peer{machine, 1};
  host_driver own{machine, 2};
  cache kept;

  explicit pair_of_processes(std::size_t most = cache::default_most) : kept(own, context_of(own), own.mark(), most) {}
};

}  // namespace

TEST_CASE("several buffers of one allocation are opened once, and have the right addresses") {
  pair_of_processes two;
  const ipc::address base = allocated(two.peer, 8192);
  put(base, 11);
  put(base + 4096, 22);
  {
    cache::lease first, second, again;
    CHECK_FALSE(two.kept.open(described(two.peer, base, 100), first));
    CHECK_FALSE(two.kept.open(described(two.peer, base + 4096, 100), second));
    CHECK_FALSE(two.kept.open(described(two.peer, base, 8192), again));
    CHECK(two.own.opens == 1);
    CHECK(second.data() == first.data() + 4096);
    CHECK(first.data() != base);
    CHECK(get(first.data()) == 11);
    CHECK(get(second.data()) == 22);
    put(second.data(), 33);
    CHECK(get(base + 4096) == 33);
  }
  CHECK(two.own.closes == 0);  // cached for the next use
  CHECK_FALSE(two.kept.close_all());
  CHECK(two.own.closes == 1);
  CHECK(two.peer.mem_free(base) == status::success);
  CHECK(two.machine.freed_while_open == 0);
}

TEST_CASE("memory of this process is not opened") {
  pair_of_processes two;
  const ipc::address base = allocated(two.own, 4096);
  cache::lease mine;
  CHECK_FALSE(two.kept.open(described(two.own, base + 64, 8), mine));
  CHECK(mine.data() == base + 64);
  CHECK(two.own.opens == 0);
  CHECK(two.kept.size() == 0);
  CHECK(two.own.mem_free(base) == status::success);
}

TEST_CASE("new memory at the same address is opened again, and the stale mapping is closed") {
  pair_of_processes two;
  const ipc::address base = allocated(two.peer, 4096);
  const ipc::memory_handle before = described(two.peer, base, 64);
  cache::lease stale;
  CHECK_FALSE(two.kept.open(before, stale));
  stale = {};
  CHECK(two.peer.mem_free(base) == status::success);
  two.peer.reuse(base);
  REQUIRE(allocated(two.peer, 4096) == base);
  put(base, 5);
  cache::lease fresh;
  CHECK_FALSE(two.kept.open(described(two.peer, base, 64), fresh));
  CHECK(get(fresh.data()) == 5);
  CHECK(two.own.opens == 2);
  CHECK(two.own.closes == 1);
  CHECK(two.own.open_now() == 1);

  // The old handle is invalid now: it maps neither the new memory nor the old.
  cache::lease late;
  const auto refused = two.kept.open(before, late);
  CHECK(refused.code == hocket::errc::unreachable);
  CHECK(late.data() == 0);
  CHECK(get(fresh.data()) == 5);  // in use, and so still mapped
  fresh = {};
  CHECK(two.own.open_now() == 0);
  CHECK(two.peer.mem_free(base) == status::success);
}

TEST_CASE("a new allocation closes only the mappings of older ones that it overlaps") {
  pair_of_processes two;
  const ipc::memory_handle real = [&] { return described(two.peer, allocated(two.peer, 4096), 1); }();
  const auto at = [&](std::uint64_t base, std::uint64_t size, std::uint64_t generation) {
    ipc::memory_handle made = real;  // the test double opens any handle
    made.base = base;
    made.size = size;
    made.generation = generation;
    made.offset = made.length = 0;
    cache::lease used;
    CHECK_FALSE(two.kept.open(made, used));
    return two.kept.size();
  };
  CHECK(at(1000, 100, 1) == 1);
  CHECK(at(1100, 100, 2) == 2);
  CHECK(at(1200, 100, 3) == 3);
  CHECK(at(1300, 100, 4) == 4);
  CHECK(at(1099, 102, 5) == 2);  // overlaps 1000, 1100 and 1200
  CHECK(at(1201, 99, 6) == 3);
  CHECK(at(1000, 99, 7) == 4);
  CHECK(at(0x100, 5000, 8) == 1);
  CHECK_FALSE(two.kept.close_all());
  CHECK(two.own.opens == two.own.closes);
  CHECK(two.peer.mem_free(real.base) == status::success);
}

TEST_CASE("the cache closes the least recently used of the unused mappings") {
  pair_of_processes two(2);
  std::vector<ipc::address> bases;
  std::vector<ipc::memory_handle> handles;
  for (int i = 0; i < 4; ++i) {
    bases.push_back(allocated(two.peer, 4096));
    put(bases.back(), static_cast<std::uint32_t>(i));
    handles.push_back(described(two.peer, bases.back(), 8));
  }
  const auto touch = [&](std::size_t i) {
    const int before = two.own.opens;
    cache::lease used;
    CHECK_FALSE(two.kept.open(handles[i], used));
    CHECK(get(used.data()) == i);
    return two.own.opens - before;
  };
  CHECK(touch(0) == 1);
  CHECK(touch(1) == 1);
  CHECK(touch(0) == 0);
  CHECK(touch(2) == 1);  // instead of 1
  CHECK(two.kept.size() == 2);
  CHECK(touch(0) == 0);
  CHECK(touch(1) == 1);  // instead of 2
  CHECK(touch(2) == 1);

  std::vector<cache::lease> all(4);  // mappings in use may exceed the limit
  for (std::size_t i = 0; i < 4; ++i) CHECK_FALSE(two.kept.open(handles[i], all[i]));
  CHECK(two.kept.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(get(all[i].data()) == i);
  all.clear();
  CHECK(two.kept.size() == 2);
  CHECK_FALSE(two.kept.close_all());
  CHECK(two.own.opens == two.own.closes);
  for (const ipc::address base : bases) CHECK(two.peer.mem_free(base) == status::success);
  CHECK(two.machine.freed_while_open == 0);
}

TEST_CASE("the cache opens and reuses mappings like a list ordered by last use") {
  constexpr std::size_t most = 3;
  pair_of_processes two(most);
  std::vector<ipc::memory_handle> handles;
  for (int i = 0; i < 6; ++i) handles.push_back(described(two.peer, allocated(two.peer, 4096), 8));
  std::mt19937 random(3);
  std::vector<std::size_t> recent;  // most recently used first
  for (int step = 0; step < 500; ++step) {
    const std::size_t which = random() % handles.size();
    const auto known = std::find(recent.begin(), recent.end(), which);
    const int expected = known == recent.end() ? 1 : 0;
    if (known != recent.end()) recent.erase(known);
    recent.insert(recent.begin(), which);
    recent.resize(std::min(recent.size(), most));
    const int before = two.own.opens;
    cache::lease used;
    CHECK_FALSE(two.kept.open(handles[which], used));
    CHECK(two.own.opens - before == expected);
  }
}

TEST_CASE("close_all does not close mappings in use, and reports them") {
  pair_of_processes two;
  const ipc::address base = allocated(two.peer, 4096);
  cache::lease used;
  CHECK_FALSE(two.kept.open(described(two.peer, base, 8), used));
  const auto early = two.kept.close_all();
  CHECK(early.code == hocket::errc::invalid_argument);
  CHECK(early.reason.find("1 mappings") != std::string::npos);
  put(used.data(), 4);
  CHECK(get(base) == 4);
  used = {};
  CHECK(two.own.open_now() == 0);
  CHECK_FALSE(two.kept.close_all());
  CHECK(two.peer.mem_free(base) == status::success);
}

TEST_CASE("forget closes only the mappings of that process") {
  pair_of_processes two;
  host_driver third(two.machine, 3);
  const ipc::address of_first = allocated(two.peer, 4096), of_third = allocated(third, 4096);
  cache::lease first, other;
  CHECK_FALSE(two.kept.open(described(two.peer, of_first, 8), first));
  CHECK_FALSE(two.kept.open(described(third, of_third, 8), other));
  first = {};
  two.kept.forget(two.peer.mark());
  CHECK(two.own.open_now() == 1);
  other = {};
  two.kept.forget(third.mark());
  CHECK(two.own.open_now() == 0);
  CHECK(two.peer.mem_free(of_first) == status::success);
  CHECK(third.mem_free(of_third) == status::success);
}

TEST_CASE("a thread without a context can open and close, and has no context afterwards") {
  pair_of_processes two;
  const ipc::address base = allocated(two.peer, 4096);
  const ipc::memory_handle handle = described(two.peer, base, 8);
  two.own.has_context(false);
  cache::lease used;
  CHECK_FALSE(two.kept.open(handle, used));
  used = {};
  CHECK_FALSE(two.kept.close_all());
  CHECK(two.own.closed_without_context == 0);
  CHECK(context_of(two.own) == nullptr);
  CHECK(two.peer.mem_free(base) == status::success);
}

TEST_CASE("a handle that exceeds its allocation is refused") {
  pair_of_processes two;
  const ipc::address base = allocated(two.peer, 4096);
  ipc::memory_handle handle = described(two.peer, base, 8);
  handle.offset = 4095;
  cache::lease used;
  CHECK(two.kept.open(handle, used).code == hocket::errc::invalid_argument);
  CHECK(two.own.opens == 0);
  CHECK(two.peer.mem_free(base) == status::success);
}

TEST_CASE("if there is no room for a mapping, the cache closes an unused one") {
  for (const status code : {status::out_of_memory, status::map_failed, status::too_many_peers}) {
    pair_of_processes two;
    const ipc::address first = allocated(two.peer, 4096), second = allocated(two.peer, 4096);
    const ipc::memory_handle to_first = described(two.peer, first, 8), to_second = described(two.peer, second, 8);
    cache::lease used;
    CHECK_FALSE(two.kept.open(to_first, used));
    used = {};
    two.own.inject(2, code);  // the first two calls enter the context
    CHECK_FALSE(two.kept.open(to_second, used));
    CHECK(two.own.has_failed());
    CHECK(std::string(two.own.failed_call()) == "ipc_open_mem_handle");
    CHECK(two.own.open_now() == 1);
    used = {};
    two.own.break_at(2, code);  // if the second attempt fails too
    CHECK(hocket_test::contains(two.kept.open(to_first, used).reason, hocket_test::words_for_failed(two.own, code)));
    CHECK(used.data() == 0);
    two.own.forget_faults();
    CHECK(hocket_test::contains(two.kept.close_all().reason, "closing a peer's memory"));
    CHECK(two.peer.mem_free(first) == status::success);
    CHECK(two.peer.mem_free(second) == status::success);
  }
}

TEST_CASE("if any call fails with any code, the cache reports it or recovers, without leaks or wrong bytes") {
  for (const status code : hocket_test::every_code()) {
    for (int call = 0;; ++call) {
      host_machine machine;
      host_driver peer(machine, 1), own(machine, 2);
      const ipc::address first = allocated(peer, 4096);
      ipc::address second = allocated(peer, 4096);
      put(first, 1);
      put(second, 2);
      std::vector<hocket::failure> failures;
      bool failed = false;
      {
        cache kept(own, context_of(own), own.mark(), 1);
        own.has_context(false);
        own.inject(call, code);
        const auto use = [&](ipc::address of, std::uint32_t expected) {
          cache::lease used;
          failures.push_back(kept.open(described(peer, of, 8), used));
          CHECK((used.data() != 0) == !failures.back());
          if (used.data() != 0) CHECK(get(used.data()) == expected);
        };
        use(first, 1);
        use(second, 2);
        use(first, 1);
        CHECK(peer.mem_free(second) == status::success);
        peer.reuse(second);
        second = allocated(peer, 4096);
        put(second, 3);
        use(second, 3);
        failures.push_back(kept.close_all());
        CHECK(kept.size() == 0);
        failed = own.has_failed();
      }
      INFO("call " << call << ", " << own.failed_call() << ", code " << static_cast<int>(code));
      std::string told;
      for (const hocket::failure& each : failures) {
        if (each) CHECK(each.code.category() == hocket::error_category());
        if (each) CHECK_FALSE(each.reason.empty());
        if (!failed) CHECK_FALSE(each);
        told += each.reason;
      }
      const std::string_view lost = own.failed_call();
      const bool silent =
          hocket_test::may_fail_silently(own, code) && lost != "ipc_close_mem_handle";  // close_all reports it
      if (failed && !silent) CHECK(hocket_test::contains(told, hocket_test::words_for_failed(own, code)));
      CHECK(own.opens == own.closes);
      CHECK(own.bad_closes == 0);
      CHECK(peer.mem_free(first) == status::success);
      CHECK(peer.mem_free(second) == status::success);
      CHECK(machine.allocated() == 0);
      if (!failed) {
        CHECK(call > 10);
        break;
      }
    }
  }
}

TEST_CASE("random use gives no stale bytes, and never two mappings of one allocation") {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    pair_of_processes two(1 + random() % 4);
    struct piece {
      ipc::address base = 0;
      std::uint32_t value = 0;
    };
    std::vector<piece> pieces(6);
    std::uint32_t values = 0;
    const auto make = [&](piece& which, ipc::address where) {
      two.peer.reuse(where);
      which.base = allocated(two.peer, 4096);
      put(which.base, which.value = ++values);
    };
    for (piece& each : pieces) make(each, 0);
    std::vector<std::pair<cache::lease, std::size_t>> leases;
    for (int step = 0; step < 300; ++step) {
      const std::size_t which = random() % pieces.size();
      switch (random() % 4) {
        case 0: {  // freed, and allocated again at the same address, except while in use
          bool used = false;
          for (const auto& each : leases) used = used || each.second == which;
          if (used) break;
          const ipc::address where = pieces[which].base;
          CHECK(two.peer.mem_free(where) == status::success);
          make(pieces[which], where);
          break;
        }
        case 1:
          if (!leases.empty()) leases.erase(leases.begin() + static_cast<std::ptrdiff_t>(random() % leases.size()));
          break;
        default: {
          cache::lease used;
          CHECK_FALSE(two.kept.open(described(two.peer, pieces[which].base, 8), used));
          CHECK(get(used.data()) == pieces[which].value);
          leases.emplace_back(std::move(used), which);
        }
      }
      CHECK(static_cast<std::size_t>(two.own.open_now()) == two.kept.size());
      CHECK(two.kept.size() <= pieces.size());
      for (const auto& [each, of] : leases) CHECK(get(each.data()) == pieces[of].value);
    }
    leases.clear();
    CHECK_FALSE(two.kept.close_all());
    CHECK(two.own.opens == two.own.closes);
    for (const piece& each : pieces) CHECK(two.peer.mem_free(each.base) == status::success);
  }
}

TEST_CASE("threads can open, use and return mappings at the same time") {
  pair_of_processes two(3);
  std::vector<ipc::memory_handle> handles;
  for (std::uint32_t i = 0; i < 5; ++i) {
    const ipc::address base = allocated(two.peer, 4096);
    put(base, i);
    handles.push_back(described(two.peer, base, 8));
  }
  std::vector<int> wrong(3, 0);
  std::vector<std::thread> threads;
  for (std::size_t me = 0; me < wrong.size(); ++me) {
    threads.emplace_back([&, me] {
      for (std::size_t i = 0; i < 500; ++i) {
        const std::size_t which = (i * (me + 1) + me) % handles.size();
        cache::lease used;
        if (two.kept.open(handles[which], used) || get(used.data()) != which) ++wrong[me];
      }
    });
  }
  for (std::thread& each : threads) each.join();
  CHECK(wrong == std::vector<int>(3, 0));
  CHECK_FALSE(two.kept.close_all());
  CHECK(two.own.opens == two.own.closes);
}
