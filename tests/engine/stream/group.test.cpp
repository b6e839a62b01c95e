// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Groups of ranks that order each other's streams: if there is no group, all ranks get the same reason; handles of
// buffers are cached while they are valid; destroyed operations are not retained forever.
#include "engine/stream/device_ranks.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/listed.hpp>
#include <hocket/transport/cuda_ipc/export_cache.hpp>
#include <hocket/transport/cuda_ipc/group.hpp>
#include <hocket/transport/cuda_ipc/host_words.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using namespace hocket_test;
namespace plan = hocket::plan;
using hocket::errc;

namespace {

/// Failures of ranks that try to form a group, each after `prepare(rank)`. They must be equal on all ranks.
std::vector<hocket::failure> joining(device_ranks& all, const std::function<void(device_rank&)>& prepare,
                                     int connections = 32) {
  std::vector<hocket::failure> heard(all.drivers().size());
  all.run([&](device_rank& me) {
    prepare(me);
    std::unique_ptr<device_group> none;
    const auto rank = static_cast<std::size_t>(me.rank());
    heard[rank] = device_group::make(all.drivers().place(rank), me.rank(), me.size(), me.exchange(),
                                     {.device = me.driver().device(),
                                      .process = me.driver().mark(),
                                      .until = soon(std::chrono::milliseconds(500)),
                                      .connections = connections,
                                      .has_ended = [](int) { return false; }},
                                     none);
    if (none != nullptr && none->close(soon())) heard[rank] = hocket::make_failure(errc::system, "does not close");
  });
  CHECK(all.machine.freed_while_open == 0);
  CHECK(all.machine.freed_while_used == 0);
  for (const hocket::failure& each : heard) {
    CHECK(each.code == heard[0].code);
    CHECK(each.reason == heard[0].reason);
    CHECK(each.context.peer == heard[0].context.peer);
  }
  return heard;
}

bool contains(const hocket::failure& found, const std::string& words) {
  return found.message().find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("ranks that don't reach each other's memory form no group, and all get an error that names two of them") {
  device_ranks all(3);
  const auto heard = joining(all, [](device_rank& me) {
    if (me.rank() == 2) me.driver().spoil_reads();
  });
  CHECK(heard[0].code == errc::unreachable);
  CHECK(contains(heard[0], "rank 2 can't reach the device memory of rank 0"));
  CHECK(all.machine.allocated() == 0);
}

TEST_CASE("ranks whose streams can't wait for words form no group") {
  device_ranks all(2);
  const auto heard = joining(all, [](device_rank& me) {
    if (me.rank() == 1) me.driver().lose_words();
  });
  CHECK(heard[0].code == errc::unreachable);
  CHECK(contains(heard[0], "streams of this device can't wait for a word in device memory"));
  CHECK(heard[0].context.peer == 1);
}

TEST_CASE("ranks whose words can't be cleared in time form no group and keep the memory of the words") {
  host_machine machine;
  processes all(machine, {{1, 0}, {2, 0}});
  all.driver(0).stop_streams();
  std::vector<hocket::failure> heard(2);
  all.run([&](std::size_t rank) {
    std::unique_ptr<device_group> none;
    heard[rank] = device_group::make(all.place(rank), static_cast<int>(rank), 2, all.exchange(rank),
                                     {.process = all.driver(rank).mark(),
                                      .until = soon(std::chrono::milliseconds(100)),
                                      .has_ended = [](int) { return false; }},
                                     none);
  });
  for (const hocket::failure& each : heard) CHECK(each.code == errc::timeout);
  CHECK(machine.allocated() == 1);
}

TEST_CASE("the error about more threads than a device has connections for names the variable to set") {
  device_ranks threads(5, kind_of_ranks::threads);
  CHECK(contains(joining(
                     threads, [](device_rank&) {}, 8)[0],
                 "CUDA_DEVICE_MAX_CONNECTIONS=32"));
  device_ranks fewer(4, kind_of_ranks::threads);
  CHECK_FALSE(static_cast<bool>(joining(
      fewer, [](device_rank&) {}, 8)[0]));
  device_ranks processes_of_their_own(5);
  CHECK_FALSE(static_cast<bool>(joining(
      processes_of_their_own, [](device_rank&) {}, 8)[0]));
}

TEST_CASE("the error about threads on a device that loads kernels lazily names the variable to set") {
  for (const bool threads : {true, false}) {
    device_ranks all(2, threads ? kind_of_ranks::threads : kind_of_ranks::processes);
    const auto heard = joining(all, [](device_rank& me) { me.driver().load_late(); });
    CHECK(contains(heard[0], "CUDA_MODULE_LOADING=EAGER") == threads);
    CHECK((heard[0].code == errc::bad_environment) == threads);
  }
}

TEST_CASE("threads form a group only when the streams that they name have completed their work") {
  device_ranks all(2, kind_of_ranks::threads);
  std::atomic<bool> released[2] = {};
  std::vector<std::string> complaints(2);
  all.run([&](device_rank& me) {
    std::string& text = complaints[static_cast<std::size_t>(me.rank())];
    std::atomic<bool>& mine = released[me.rank()];
    auto* const word = me.allocate<std::uint32_t>(1);
    me.works_on = me.stream();
    me.driver().stream_wait_value_32(me.works_on, reinterpret_cast<ipc::address>(word), 1, ipc::wait_then_flush);
    std::thread other([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(30));
      mine = true;
      std::atomic_ref(*word).store(1);
    });
    const hocket::failure found = me.join();
    if (found) {
      text = found.message();
    } else if (!released[0] || !released[1]) {
      text = "there was a group earlier";
    } else if (const hocket::failure ending = me.group().close(soon())) {
      text = ending.message();
    }
    other.join();
    me.leave();
    me.free_all();
  });
  for (const std::string& each : complaints) CHECK(each == "");
}

TEST_CASE("handles of buffers are cached, and never used for another buffer") {
  host_machine machine;
  host_driver driver(machine, 1);
  const ipc::driver_context<host_driver> at{&driver, reinterpret_cast<ipc::context_handle>(std::uintptr_t{1})};
  ipc::export_cache<host_driver> kept(at, driver.mark());
  ipc::address buffer = 0;
  REQUIRE(driver.mem_alloc(&buffer, 4096) == status::success);
  ipc::memory_handle first, again, part, other;
  const auto calls_of = [&](const std::function<void()>& what) {
    const int before = driver.calls();
    what();
    return driver.calls() - before;
  };
  const int to_describe = calls_of([&] { CHECK_FALSE(static_cast<bool>(kept.handle_of(buffer, 4096, first))); });
  const int to_know = calls_of([&] { CHECK_FALSE(static_cast<bool>(kept.handle_of(buffer, 4096, again))); });
  CHECK(again == first);
  CHECK(to_know <= 4);  // three of them for the context
  CHECK(to_know < to_describe);
  CHECK_FALSE(static_cast<bool>(kept.handle_of(buffer + 16, 64, part)));
  CHECK(part.offset == 16);
  // Free the buffer, and allocate other memory at the same address.
  REQUIRE(driver.mem_free(buffer) == status::success);
  CHECK(kept.handle_of(buffer, 4096, again).code == errc::unreachable);
  driver.reuse(buffer);
  ipc::address new_buffer = 0;
  REQUIRE(driver.mem_alloc(&new_buffer, 4096) == status::success);
  REQUIRE(new_buffer == buffer);
  CHECK_FALSE(static_cast<bool>(kept.handle_of(buffer, 4096, other)));
  CHECK(other.generation != first.generation);
  driver.mem_free(new_buffer);
}

TEST_CASE("destroyed operations are released once they are complete") {
  device_ranks(2).run_in_group([&](device_rank& me) -> std::string {
    const std::plus<> op;
    float* const buffer = me.upload(samples<float>(me.rank(), 10));
    const auto at = reinterpret_cast<ipc::address>(buffer);
    const ipc::stream_handle stream = me.stream();
    std::size_t most = 0;
    for (int i = 0; i < 50; ++i) {
      std::unique_ptr<device_operation> work;
      hocket::failure found = me.bind({.plan = plan::one_shot{},
                                       .block_elements = 10,
                                       .element_kernel = &queue_kernel_of<std::plus<>, float>,
                                       .operation = &op,
                                       .in = at,
                                       .out = at},
                                      work);
      if (!found) found = work->enqueue(stream);
      if (i % 5 == 4 && !found) found = work->finish(soon());
      if (found) return found.message();
      work.reset();  // with scratch and mappings that the stream still uses
      most = std::max(most, me.group().in_flight());
    }
    return most <= 8 ? "" : std::to_string(most) + " operations are retained";
  });
}

TEST_CASE("a plan whose signals are not answered can be enqueued many times") {
  // Rank 0 signals, the others wait: without acknowledgements it could be far ahead.
  plan::listed hint("hint", {plan::collective_kind::all_gather}, 3, {.peer_pointers = true});
  hint.lane(0) = {plan::signal(1, 0), plan::signal(2, 0)};
  hint.lane(1) = {plan::wait(0, 0)};
  hint.lane(2) = {plan::wait(0, 0)};
  device_ranks(3).run_in_group([&](device_rank& me) -> std::string {
    std::unique_ptr<device_operation> work;
    hocket::failure found = me.bind(
        {.plan = hint, .block_elements = 0, .element_kernel = &hocket::kernel::copy_stream_kernel_of<char>}, work);
    const ipc::stream_handle stream = me.stream();
    if (me.rank() == 1) std::this_thread::sleep_for(std::chrono::milliseconds(30));
    for (int i = 0; i < 100 && !found; ++i) found = work->enqueue(stream);
    if (!found) found = work->finish(soon());
    return found ? found.message() : "";
  });
}

TEST_CASE("processes signal each other by words in host memory, and detect the end of a process") {
  // A child that shares its page and its mark, and is killed.
  int pipes[2];
  REQUIRE(::pipe(pipes) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ipc::host_words words;
    if (words.make()) ::_exit(1);
    const auto ticket = words.ticket();
    const ipc::process_mark mark = ipc::own_mark();
    if (words.open(0, {ticket})) ::_exit(2);
    words.arrive(7, 1);
    if (::write(pipes[1], &mark, sizeof mark) < 0 || ::write(pipes[1], ticket.data(), ticket.size()) < 0) ::_exit(3);
    for (;;) ::pause();
  }
  ipc::process_mark mark;
  ipc::host_words words;
  REQUIRE_FALSE(static_cast<bool>(words.make()));
  std::vector<std::byte> ticket(words.ticket().size());
  REQUIRE(::read(pipes[0], &mark, sizeof mark) == sizeof mark);
  REQUIRE(::read(pipes[0], ticket.data(), ticket.size()) == static_cast<ssize_t>(ticket.size()));
  REQUIRE_FALSE(static_cast<bool>(words.open(0, {words.ticket(), ticket})));
  CHECK(words.arrived(1) == 7);
  CHECK(words.culprit_named_by(1) == -1);
  ipc::process_watches watches(ipc::own_mark(), {ipc::own_mark(), mark});
  CHECK_FALSE(watches(1));
  ::kill(child, SIGKILL);
  for (int i = 0; i < 1000 && !watches(1); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(watches(1));
  CHECK_FALSE(watches(0));  // this process
  ::waitpid(child, nullptr, 0);
  ::close(pipes[0]);
  ::close(pipes[1]);
  std::vector<std::byte> nonsense(ticket.size());
  CHECK(words.open(0, {nonsense}).code == errc::unreachable);
}
