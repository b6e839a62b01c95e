// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Failures of calls on device memory: misuse is reported before anything is sent; a driver error, in any call and with
// any code, ends the communicator on all ranks, which name the failed rank; waits end; no memory is freed that a stream
// may still access.
#include "collective/device/devices.hpp"
#include "support/text.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;
namespace cuda = hocket::cuda;
using hocket::errc;
using hocket::with;

namespace {

constexpr cuda::staging kilobyte_chunks{1024};

/// The machine and the drivers of the ranks.
struct story {
  explicit story(int ranks) : all(machine, std::vector<where_rank_runs>(static_cast<std::size_t>(ranks))) {}
  host_driver& driver(int rank) { return all.driver(static_cast<std::size_t>(rank)); }

  host_machine machine;
  processes all;
};

/// An all_reduce in place, in chunks of a kilobyte.
template <class Options>
void reduce(thread_rank& me, const rank_device& mine, placed_vector<float>& buffer, const Options& options) {
  hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(buffer.span())), std::plus<>{},
                     options.and_also(mine.order()).and_also(kilobyte_chunks));
}

constexpr std::size_t five_chunks = 5 * kilobyte_chunks.chunk_bytes / sizeof(float) - 3;

}  // namespace

TEST_CASE("a wrong tag is reported with the right one before anything is sent, and the communicator stays usable") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    host_driver& driver = mine.driver();
    placed_vector<float> device(driver, 100, memory_space::device), pinned(driver, 100, memory_space::pinned),
        managed(driver, 100, memory_space::managed);
    std::vector<float> plain(100);
    const auto options = with(mine.order());
    const auto said = [&](auto in, auto out) {
      const auto found =
          me.expect(errc::invalid_argument, [&] { hocket::all_reduce(me.comm(), in, out, std::plus<>{}, options); });
      return found ? found->reason() : std::string();
    };
    const auto in_device = cuda::device(device.span());
    me.check(contains(said(cuda::device(pinned.span()), in_device),
                      "in was passed as cuda::device(...) and lies in pinned host memory; the right tag is "
                      "cuda::pinned(...)"),
             "pinned as device");
    me.check(contains(said(cuda::device(managed.span()), in_device), "the right tag is cuda::managed(...)"),
             "managed as device");
    me.check(contains(said(in_device, cuda::pinned(device.data() + 50, 50)), "in has 100 elements and out 50"),
             "sizes");
    me.check(contains(said(cuda::pinned(plain), in_device),
                      "in was passed as cuda::pinned(...) and lies in plain host memory, or in memory that was freed; "
                      "pass all buffers of a call without tags"),
             "plain as pinned");
    me.check(contains(said(cuda::device(static_cast<const float*>(nullptr), 100), in_device),
                      "in was passed as cuda::device(...) and is a null pointer, though its size is not 0"),
             "null");
    const auto no_chunks = me.expect(errc::invalid_argument, [&] {
      hocket::all_reduce(me.comm(), hocket::in_place(in_device), std::plus<>{}, options.and_also(cuda::staging{0}));
    });
    me.check(no_chunks && contains(no_chunks->reason(), "cuda::staging sets chunks of 0 bytes"), "no chunks");
    me.check(contains(said(cuda::device(plain), in_device), "lies in plain host memory"), "plain as device");
    me.check(contains(said(cuda::managed(pinned.span()), in_device), "the right tag is cuda::pinned(...)"),
             "pinned as managed");
    me.check(contains(said(in_device, cuda::managed(pinned.span())),
                      "out was passed as cuda::managed(...) and lies in pinned host memory"),
             "out");
    me.check(contains(said(in_device, cuda::device(device.data() + 10, 100)), "in and out overlap"), "overlap");
    me.check(!me.comm().revoked(), "revoked");
    hocket::all_reduce(me.comm(), hocket::in_place(in_device), std::plus<>{}, options);
  });
}

TEST_CASE("a null stream and a captured stream are refused") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    placed_vector<float> buffer(mine.driver(), 10, memory_space::device);
    const auto on = [&](cuda::stream_of<host_driver> stream) {
      hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(buffer.span())), std::plus<>{}, with(stream));
    };
    const auto null = me.expect(errc::invalid_argument, [&] { on({&mine.driver(), nullptr}); });
    me.check(null && contains(null->reason(), "cudaStreamLegacy"), "null");
    mine.driver().capture(true);
    const auto captured = me.expect(errc::invalid_argument, [&] { on(mine.order()); });
    me.check(captured && contains(captured->reason(), "captured into a graph"), "captured");
    mine.driver().capture(false);
    on(mine.order());
  });
}

TEST_CASE("without a CUDA driver, a call with a stream_ref reports this on all ranks") {
  hocket::failure why;
  if (hocket::cuda_ipc::driver::load(why)) return;
  on_ranks(2, [](thread_rank& me) {
    float element = 0;
    const cuda::stream_ref stream(reinterpret_cast<CUstream_st*>(&element));
    const auto said = me.expect(errc::bad_environment, [&] {
      hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(&element, 1)), std::plus<>{}, with(stream));
    });
    me.check(said && contains(said->reason(), "no CUDA here"), "wrong text");
  });
}

TEST_CASE("errors are also returned as std::error_code") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    placed_vector<float> buffer(mine.driver(), 10, memory_space::device);
    const auto right = cuda::device(buffer.span());
    const auto wrong = cuda::managed(buffer.span());
    const auto options = with(mine.order());
    std::error_code code;
    hocket::all_reduce(me.comm(), hocket::in_place(wrong), std::plus<>{}, options, code);
    me.check(code == errc::invalid_argument, "all_reduce in place");
    hocket::all_reduce(me.comm(), wrong, right, std::plus<>{}, options, code);
    me.check(code == errc::invalid_argument, "all_reduce");
    hocket::broadcast(me.comm(), wrong, hocket::root{0}, options, code);
    me.check(code == errc::invalid_argument, "broadcast");
    hocket::all_to_all(me.comm(), wrong, wrong, options, code);
    me.check(code == errc::invalid_argument, "all_to_all");
    hocket::broadcast(me.comm(), right, hocket::root{0}, options, code);
    me.check(!code, "right");
  });
}

TEST_CASE("different chunk sizes, and tagged and untagged memory, are a mismatch between ranks") {
  for (const bool hosts : {false, true}) {
    host_machine machine;
    processes all(machine, {{0, 0}, {1, 0}});
    on_ranks(2, [&](thread_rank& me) {
      host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
      const rank_device mine(driver);
      placed_vector<float> buffer(driver, 2000, memory_space::device);
      const auto said = me.expect(errc::mismatch, [&] {
        if (me.rank() == 0) {
          reduce(me, mine, buffer, with());
        } else if (hosts) {
          hocket::all_reduce(me.comm(), hocket::in_place(buffer.span()));
        } else {
          hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(buffer.span())), std::plus<>{},
                             with(mine.order(), cuda::staging{2048}));
        }
      });
      me.check(said && contains(said->what(), hosts ? "cuda::tagged_memory" : "cuda::staging"),
               [&] { return said ? said->what() : "nothing"; });
    });
    check_clean(machine, all);
  }
}

namespace {

/// True if a driver call that failed during a collective need not be reported. Collectives make no clean-up calls.
bool is_quiet(const host_driver& of, status code) {
  return is_no_failure(of.failed_call(), code) || puts_back(of.failed_call());
}

}  // namespace

TEST_CASE("any driver call that fails with any code on one rank is reported on all ranks, and nothing leaks") {
  // Two ranks with every code, three ranks with two codes; streams that run immediately, and streams that run late.
  struct setting {
    int ranks;
    bool lazy;
    std::vector<status> codes;
  };
  auto every = every_code();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  every = {*every.begin(), *every.rbegin()};  // all of them would take minutes
#endif
  const setting settings[] = {{2, false, {every.begin(), every.end()}},
                              {3, false, {status::illegal_address, status::out_of_memory}},
                              {2, true, {status::illegal_address, status::invalid_context}}};
  for (const setting& each : settings) {
    for (const status code : each.codes) {
      int failures = 0;
      for (int call = 0;; ++call) {
        story of(each.ranks);
        std::vector<std::string> said(static_cast<std::size_t>(each.ranks));
        std::vector<std::error_code> codes(said.size());
        const auto begun = std::chrono::steady_clock::now();
        int calls = 0;  // of rank 0, until its collectives are complete
        on_ranks(each.ranks, [&](thread_rank& me) {
          const auto r = static_cast<std::size_t>(me.rank());
          host_driver& driver = of.driver(me.rank());
          const rank_device mine(driver);
          placed_vector<float> buffer(driver, five_chunks, memory_space::device);
          if (each.lazy) driver.be_lazy(static_cast<unsigned>(call));
          if (me.rank() == 0) driver.inject(call, code);
          try {
            reduce(me, mine, buffer, with());
            hocket::barrier(me.comm());
            if (me.rank() == 0) calls = driver.calls();
          } catch (const hocket::error& cause) {
            said[r] = cause.what();
            codes[r] = cause.code();
          }
          driver.finish_streams();
        });
        const bool reached = of.driver(0).has_failed();
        INFO("call " << call << ", " << of.driver(0).failed_call() << ", code " << static_cast<int>(code) << "\n"
                     << said[0] << "\n"
                     << said[1]);
        if (!said[0].empty()) {
          ++failures;
          CHECK(contains(said[0], std::string("error ") + std::to_string(static_cast<int>(code))));
          for (std::size_t r = 1; r < said.size(); ++r) {
            CHECK(codes[r] == codes[0]);
            CHECK(contains(said[r], "rank 0 reports"));
          }
        } else {
          CHECK((call >= calls || is_quiet(of.driver(0), code)));
          for (const std::string& each_said : said) CHECK(each_said.empty());
        }
        CHECK(std::chrono::steady_clock::now() - begun < 10s);
        check_clean(of.machine, of.all);
        CHECK(of.driver(0).copies_of_freed == 0);
        if (!reached) break;
      }
      CHECK(failures > 30);
    }
  }
}

namespace {

/// Stops rank 0's streams and ends its call by `end`; both ranks must report `expected`. Memory in use is not freed.
template <class End>
void check_stopped(errc expected, const std::string& words, End end) {
  host_machine machine;
  processes all(machine, {{0, 0}, {1, 0}});
  on_ranks(2, [&](thread_rank& me) {
    host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
    const rank_device mine(driver);
    placed_vector<float> buffer(driver, five_chunks, memory_space::device);
    driver.be_lazy(1);
    if (me.rank() == 0) driver.stop_streams(0);
    const auto begun = std::chrono::steady_clock::now();
    const auto said = me.expect(expected, [&] { end(me, mine, buffer); });
    me.check(said && (me.rank() == 1 ? contains(said->what(), "rank 0 reports") : contains(said->what(), words)),
             [&] { return said ? said->what() : "nothing"; });
    me.check(std::chrono::steady_clock::now() - begun < 10s, "late");
    me.expect(errc::revoked, [&] { hocket::barrier(me.comm()); });
    driver.finish_streams();  // as far as they run; then the memory may be freed
  });
  CHECK(all.driver(0).pinned() > 0);
  CHECK(all.driver(0).streams() == 2);
  CHECK(all.driver(1).pinned() == 0);
  CHECK(all.driver(1).streams() == 0);
  CHECK(all.driver(0).copies_of_freed == 0);
}

}  // namespace

TEST_CASE("a stream that does not complete causes a timeout that reports this and keeps its memory") {
  check_stopped(errc::timeout, "the work enqueued on the stream before this call, or a copy after it, did not complete",
                [](thread_rank& me, const rank_device& mine, placed_vector<float>& buffer) {
                  if (me.rank() == 0) {
                    reduce(me, mine, buffer, with(hocket::timeout(200ms)));
                  } else {
                    reduce(me, mine, buffer, with());
                  }
                });
}

TEST_CASE("an abort ends a call that waits for a stream") {
  check_stopped(errc::aborted, "abort() was called",
                [](thread_rank& me, const rank_device& mine, placed_vector<float>& buffer) {
                  std::jthread other;
                  if (me.rank() == 0) {
                    other = std::jthread([&] {
                      std::this_thread::sleep_for(50ms);
                      me.comm().abort();
                    });
                  }
                  reduce(me, mine, buffer, with());
                });
}

TEST_CASE("a stop token ends a call that waits for a stream") {
  check_stopped(errc::aborted, "the stop token of this call was triggered",
                [](thread_rank& me, const rank_device& mine, placed_vector<float>& buffer) {
                  std::stop_source source;
                  std::jthread other;
                  if (me.rank() == 0) {
                    other = std::jthread([&] {
                      std::this_thread::sleep_for(50ms);
                      source.request_stop();
                    });
                  }
                  reduce(me, mine, buffer, with(source.get_token()));
                });
}

TEST_CASE("an operation that throws ends the call, and nothing leaks") {
  host_machine machine;
  processes all(machine, {{0, 0}, {1, 0}});
  on_ranks(2, [&](thread_rank& me) {
    host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
    const rank_device mine(driver);
    placed_vector<float> buffer(driver, five_chunks, memory_space::device);
    struct thrower {
      float operator()(float, float) const { throw std::runtime_error("no"); }
    };
    me.expect(errc::invalid_argument, [&] {
      hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(buffer.span())), thrower{},
                         with(mine.order(), kilobyte_chunks));
    });
  });
  check_clean(machine, all);
}

TEST_CASE("an asynchronous call fails like a blocking one, and its request reports the error") {
  for (int call = 0;; ++call) {
    host_machine machine;
    processes all(machine, {{0, 0}, {1, 0}});
    std::vector<std::string> said(2);
    int calls = 0;  // of rank 0, until its collectives are complete
    on_ranks(2, [&](thread_rank& me) {
      host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
      const rank_device mine(driver);
      placed_vector<float> buffer(driver, five_chunks, memory_space::device);
      if (me.rank() == 0) driver.inject(call, status::illegal_address);
      try {
        hocket::request started = hocket::all_reduce_async(me.comm(), hocket::in_place(cuda::device(buffer.span())),
                                                           std::plus<>{}, with(mine.order(), kilobyte_chunks));
        started.wait();
        hocket::barrier(me.comm());
        if (me.rank() == 0) calls = driver.calls();
      } catch (const hocket::error& cause) {
        said[static_cast<std::size_t>(me.rank())] = cause.what();
        me.check(cause.code() == errc::system && contains(cause.what(), "error 700"), cause.what());
        me.check(me.comm().revoked(), "not revoked");
      }
      driver.finish_streams();
    });
    check_clean(machine, all);
    if (!all.driver(0).has_failed()) break;
    INFO("call " << call << ", " << all.driver(0).failed_call());
    CHECK(said[0].empty() == said[1].empty());
    CHECK((!said[0].empty() || call >= calls || is_quiet(all.driver(0), status::illegal_address)));
  }
}

TEST_CASE("the timeout of a rank that waits for a rank with a stalled stream names the call of that rank") {
  host_machine machine;
  processes all(machine, {{0, 0}, {1, 0}});
  on_ranks(2, [&](thread_rank& me) {
    host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
    const rank_device mine(driver);
    placed_vector<float> buffer(driver, five_chunks, memory_space::device);
    driver.be_lazy(1);
    if (me.rank() == 0) driver.stop_streams(0);
    const auto said = me.expect(errc::timeout, [&] {
      if (me.rank() == 0) {
        reduce(me, mine, buffer, with());
      } else {
        reduce(me, mine, buffer, with(hocket::timeout(300ms)));
      }
    });
    if (!said) return;
    me.check(me.rank() == 0 || (said->context().peer == 0 && contains(said->what(), "rank 0 is in all_reduce")),
             said->what());
    me.check(me.rank() == 1 || contains(said->what(), "rank 1 reports"), said->what());
    driver.finish_streams();
  });
}
