// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Messages between two ranks from and to device memory arrive unchanged and in order, in each kind of memory, in one
// chunk and in many. send_recv does not wait for a direction that the peer has not started. Both ranks report failures.
#include "collective/device/checked_call.hpp"
#include "collective/device/devices.hpp"
#include "support/elements.hpp"
#include "support/text.hpp"
#include "transport/cuda_ipc/silent_calls.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;
namespace cuda = hocket::cuda;
using hocket::errc;
using hocket::peer;
using hocket::tag;
using hocket::with;

namespace {

using doubles = placed_vector<double>;
constexpr auto device = memory_space::device;

/// Elements in a chunk of `small_chunks`.
constexpr std::size_t chunk = chunk_bytes / sizeof(double);

std::vector<double> read_out(const rank_device& mine, doubles& from) {
  std::vector<double> found;
  from.read(mine.stream(), found);
  mine.driver().finish_streams();
  return found;
}

}  // namespace

TEST_CASE("send_recv passes messages around a ring from and to each kind of memory") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_devices(ranks, true, [](thread_rank& me, const rank_device& mine) {
      const auto options = with(mine.order(), small_chunks);
      const peer next{(me.rank() + 1) % me.size()}, previous{(me.rank() + me.size() - 1) % me.size()};
      for (const std::size_t size : sizes) {
        for (std::size_t turn = 0; turn < 6; ++turn) {
          me.at([&] { return "send_recv of " + std::to_string(size) + ", turn " + std::to_string(turn); });
          check_call<double>(
              me, mine, turn, samples<double>(me.rank(), size), samples<double>(previous.rank, size),
              [&](auto out, auto in) { hocket::send_recv(me.comm(), out, next, in, previous, tag{3}, options); });
        }
      }
    });
  }
}

TEST_CASE("messages arrive unchanged if sizes, types and kinds of memory of the two directions differ") {
  on_devices(2, true, [](thread_rank& me, const rank_device& mine) {
    const auto options = with(mine.order(), small_chunks);
    const peer other{1 - me.rank()};
    for (const std::size_t size : sizes) {
      const std::size_t back = 5000 - size;
      placed_vector<float> there(mine.driver(), size, me.rank() == 0 ? memory_space::managed : device, 1);
      placed_vector<triple> here(mine.driver(), back, me.rank() == 0 ? device : memory_space::pinned);
      if (me.rank() == 0) {
        there.write(mine.stream(), samples<float>(0, size));
        hocket::send_recv(me.comm(), cuda::managed(there.span()), other, cuda::device(here.span()), other, tag{1},
                          options);
      } else {
        here.write(mine.stream(), samples<triple>(1, back));
        // One after the other: the peer must not need both at the same time. Large messages wait for their receivers.
        hocket::recv(me.comm(), cuda::device(there.span()), other, tag{1}, options);
        hocket::send(me.comm(), cuda::pinned(std::span<const triple>(here.span())), other, tag{1}, options);
      }
      std::vector<float> one;
      std::vector<triple> two;
      there.read(mine.stream(), one);
      here.read(mine.stream(), two);
      mine.driver().finish_streams();
      me.check(one == samples<float>(0, size) && two == samples<triple>(1, back), "values");
      me.check(there.intact() && here.intact(), "wrote outside the buffers");
    }
  });
}

TEST_CASE("asynchronous messages of one tag arrive in the order of their calls") {
  on_devices(2, true, [](thread_rank& me, const rank_device& mine) {
    const auto options = with(mine.order(), small_chunks);
    std::vector<std::unique_ptr<doubles>> buffers;
    std::vector<hocket::request> all;
    for (std::size_t i = 0; i < 6; ++i) {
      const std::size_t size = i * (chunk + chunk / 2);  // none, and up to eight chunks
      buffers.push_back(std::make_unique<doubles>(mine.driver(), size, device));
      const auto view = cuda::device(buffers.back()->span());
      const tag label{i == 3 ? 9 : 4};
      if (me.rank() == 0) {
        buffers.back()->write(mine.stream(), samples<double>(static_cast<int>(i), size));
        all.push_back(hocket::send_async(me.comm(), view, peer{1}, label, options));
      } else {
        all.push_back(hocket::recv_async(me.comm(), view, peer{0}, label, options));
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) all[me.rank() == 0 ? i : all.size() - 1 - i].wait();
    for (std::size_t i = 0; i < all.size(); ++i) {
      me.check(read_out(mine, *buffers[i]) == samples<double>(static_cast<int>(i), buffers[i]->size()),
               "message " + std::to_string(i));
    }
  });
}

TEST_CASE("messages in device memory make progress beside collectives and messages in host memory") {
  on_devices(3, true, [](thread_rank& me, const rank_device& mine) {
    const auto options = with(mine.order(), small_chunks);
    const peer next{(me.rank() + 1) % 3}, previous{(me.rank() + 2) % 3};
    const std::size_t size = 4 * chunk + 1;
    doubles out(mine.driver(), size, device), in(mine.driver(), size, device), sum(mine.driver(), size, device);
    out.write(mine.stream(), samples<double>(me.rank(), size));
    sum.write(mine.stream(), std::vector<double>(size, 1.0));
    std::vector<double> host_out = samples<double>(10 + me.rank(), size), host_in(size);
    hocket::request one = hocket::send_recv_async(me.comm(), cuda::device(out.span()), next, cuda::device(in.span()),
                                                  previous, tag{0}, options);
    hocket::request two = hocket::send_recv_async(me.comm(), host_out, next, host_in, previous, tag{1});
    hocket::all_reduce(me.comm(), hocket::in_place(cuda::device(sum.span())), std::plus<>{}, options);
    two.wait();
    one.wait();
    me.check(read_out(mine, in) == samples<double>(previous.rank, size), "device");
    me.check(host_in == samples<double>(10 + previous.rank, size), "host");
    me.check(read_out(mine, sum) == std::vector<double>(size, 3.0), "sum");
  });
}

TEST_CASE("each chunk of a message is copied once, in a bounded number of slots that later messages use again") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    doubles buffer(mine.driver(), 10 * chunk, device);
    const auto options = with(mine.order(), small_chunks);
    const auto call = [&] {
      if (me.rank() == 0) {
        hocket::send(me.comm(), cuda::device(buffer.span()), peer{1}, tag{0}, options);
      } else {
        hocket::recv(me.comm(), cuda::device(buffer.span()), peer{0}, tag{0}, options);
      }
    };
    mine.driver().copied_to_host.clear();
    call();
    me.check(mine.driver().copied_to_host == std::vector<bool>(10, me.rank() == 0), "ten copies, one way");
    const int pinned = mine.driver().pinned(), streams = mine.driver().streams();
    for (int i = 0; i < 10; ++i) call();
    me.check(mine.driver().pinned() == pinned && mine.driver().streams() == streams, "later calls allocated more");
    me.check(pinned <= static_cast<int>(hocket::cuda_ipc::staging_slots), "slots");
  });
}

TEST_CASE("misuse of a message is reported before anything is sent, and the communicator stays usable") {
  on_devices(2, false, [](thread_rank& me, const rank_device& mine) {
    doubles buffer(mine.driver(), 10, device), pinned(mine.driver(), 10, memory_space::pinned);
    const auto options = with(mine.order());
    const peer other{1 - me.rank()};
    const auto said = [&](auto call) {
      const auto found = me.expect(errc::invalid_argument, call);
      return found ? found->reason() : std::string();
    };
    const auto view = cuda::device(buffer.span());
    me.check(contains(said([&] { hocket::send(me.comm(), cuda::managed(buffer.span()), other, tag{0}, options); }),
                      "the buffer was passed as cuda::managed(...) and lies in"),
             "send");
    me.check(contains(said([&] { hocket::recv(me.comm(), cuda::device(pinned.span()), other, tag{0}, options); }),
                      "the right tag is cuda::pinned(...)"),
             "recv");
    me.check(contains(said([&] {
                        hocket::send_recv(me.comm(), view, other, cuda::device(pinned.span()), other, tag{0}, options);
                      }),
                      "in was passed as cuda::device(...)"),
             "in");
    me.check(contains(said([&] {
                        hocket::send_recv(me.comm(), cuda::pinned(buffer.span()), other, cuda::pinned(pinned.span()),
                                          other, tag{0}, options);
                      }),
                      "out was passed as cuda::pinned(...)"),
             "out");
    me.check(contains(said([&] { hocket::send(me.comm(), view, peer{2}, tag{0}, options); }), "peer is 2"), "peer");
    me.check(contains(said([&] { hocket::send(me.comm(), view, other, tag{-1}, options); }), "tag is -1"), "tag");
    const cuda::stream_of<host_driver> null{&mine.driver(), nullptr};
    me.check(contains(said([&] { hocket::recv(me.comm(), view, other, tag{0}, with(null)); }), "the stream is null"),
             "stream");
    std::error_code code;
    hocket::send(me.comm(), cuda::managed(buffer.span()), other, tag{0}, options, code);
    me.check(code == errc::invalid_argument, "send, code");
    hocket::recv(me.comm(), cuda::managed(buffer.span()), other, tag{0}, options, code);
    me.check(code == errc::invalid_argument, "recv, code");
    hocket::send_recv(me.comm(), view, other, cuda::managed(buffer.span()), other, tag{0}, options, code);
    me.check(code == errc::invalid_argument, "send_recv, code");
    hocket::send_recv(me.comm(), view, other, cuda::pinned(pinned.span()), other, tag{0}, options, code);
    me.check(!code, "right");
  });
}

TEST_CASE("a sender and a receiver that disagree get a mismatch") {
  enum class differs { by_a_chunk, by_an_element, type, chunks, host, bytes_of_host, host_sends };
  for (const differs what : {differs::by_a_chunk, differs::by_an_element, differs::type, differs::chunks, differs::host,
                             differs::bytes_of_host, differs::host_sends}) {
    host_machine machine;
    processes all(machine, {{0, 0}, {1, 0}});
    on_ranks(2, [&](thread_rank& me) {
      host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
      const rank_device mine(driver);
      doubles buffer(driver, 4 * chunk, device);
      placed_vector<std::int64_t> other(driver, 4 * chunk, device);
      const auto options = with(mine.order(), small_chunks);
      const auto view = cuda::device(buffer.span());
      // A host message that is longer than expected is `truncated`; here both cases are a mismatch.
      const auto said = me.expect(errc::mismatch, [&] {
        if (me.rank() == 0 && what == differs::host_sends) {
          hocket::send(me.comm(), buffer.span(), peer{1});
          hocket::barrier(me.comm());
        } else if (me.rank() == 0) {
          hocket::send(me.comm(), view, peer{1}, tag{0}, options);
          hocket::barrier(me.comm());
        } else if (what == differs::by_a_chunk) {
          hocket::recv(me.comm(), cuda::device(buffer.span().first(3 * chunk)), peer{0}, tag{0}, options);
        } else if (what == differs::by_an_element) {
          hocket::recv(me.comm(), cuda::device(buffer.span().first(4 * chunk - 1)), peer{0}, tag{0}, options);
        } else if (what == differs::type) {
          hocket::recv(me.comm(), cuda::device(other.span()), peer{0}, tag{0}, options);
        } else if (what == differs::chunks) {
          hocket::recv(me.comm(), view, peer{0}, tag{0}, with(mine.order(), cuda::staging{2 * chunk_bytes}));
        } else if (what == differs::bytes_of_host) {
          hocket::recv(me.comm(), std::as_writable_bytes(buffer.span()), peer{0});
        } else if (what == differs::host_sends) {
          hocket::recv(me.comm(), view, peer{0}, tag{0}, options);
        } else {
          hocket::recv(me.comm(), buffer.span(), peer{0});
        }
      });
      me.check(said && contains(said->what(), what == differs::by_an_element || what == differs::by_a_chunk
                                                  ? "as many elements"
                                                  : "tagged buffer"),
               [&] { return said ? said->what() : "nothing"; });
      driver.finish_streams();
    });
    check_clean(machine, all);
  }
}

TEST_CASE("a message on a stream that does not complete causes a timeout that reports this and keeps its memory") {
  for (const bool sends : {true, false}) {
    host_machine machine;
    processes all(machine, {{0, 0}, {1, 0}});
    on_ranks(2, [&](thread_rank& me) {
      host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
      const rank_device mine(driver);
      doubles buffer(driver, 5 * chunk, device);
      driver.be_lazy(1);
      if (me.rank() == 0) driver.stop_streams(0);
      const auto view = cuda::device(buffer.span());
      const auto options = with(mine.order(), small_chunks);
      const auto said = me.expect(errc::timeout, [&] {
        const auto brief = options.and_also(hocket::timeout(200ms));
        if (me.rank() == 0 && sends) hocket::send(me.comm(), view, peer{1}, tag{0}, brief);
        if (me.rank() == 0 && !sends) hocket::recv(me.comm(), view, peer{1}, tag{0}, brief);
        if (me.rank() == 1 && sends) hocket::recv(me.comm(), view, peer{0}, tag{0}, options);
        if (me.rank() == 1 && !sends) hocket::send(me.comm(), view, peer{0}, tag{0}, options);
        hocket::barrier(me.comm());
      });
      me.check(said && contains(said->what(), me.rank() == 1 ? "rank 0 reports" : "the work enqueued on the stream"),
               [&] { return said ? said->what() : "nothing"; });
      driver.finish_streams();
    });
    CHECK(all.driver(0).pinned() > 0);
    CHECK(all.driver(1).pinned() == 0);
    CHECK(all.driver(0).copies_of_freed == 0);
  }
}

TEST_CASE("a timeout names the peer that does not send or receive a message") {
  for (const bool sends : {true, false}) {
    on_devices(2, false, [&](thread_rank& me, const rank_device& mine) {
      doubles buffer(mine.driver(), 500 * chunk, device);  // more than is in flight without the peer
      const auto options = with(mine.order(), small_chunks, hocket::timeout(200ms));
      const auto said = me.expect(errc::timeout, [&] {
        if (me.rank() == 1) {
          hocket::barrier(me.comm());
        } else if (sends) {
          hocket::send(me.comm(), cuda::device(buffer.span()), peer{1}, tag{7}, options);
        } else {
          hocket::recv(me.comm(), cuda::device(buffer.span()), peer{1}, tag{7}, options);
        }
      });
      if (!said || me.rank() == 1) return;
      me.check(said->context().peer == 1 && !contains(said->what(), "the stream"), said->what());
    });
  }
}

TEST_CASE("the timeout of a message that waits for an earlier one reports this and names no peer") {
  host_machine machine;
  processes all(machine, {{0, 0}, {1, 0}});
  on_ranks(2, [&](thread_rank& me) {
    host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
    const rank_device mine(driver);
    doubles stuck(driver, chunk, device);
    std::vector<double> host(chunk);
    driver.be_lazy(1);
    if (me.rank() == 0) driver.stop_streams(0);
    const auto said = me.expect(errc::timeout, [&] {
      if (me.rank() == 0) {
        hocket::request first =
            hocket::send_async(me.comm(), cuda::device(stuck.span()), peer{1}, tag{0}, with(mine.order()));
        hocket::send(me.comm(), host, peer{1}, tag{0}, with(hocket::timeout(200ms)));
      } else {
        hocket::recv(me.comm(), cuda::device(stuck.span()), peer{0}, tag{0}, with(mine.order()));
      }
    });
    if (!said || me.rank() == 1) return;
    me.check(contains(said->what(), "an earlier message of the same tag") && said->context().peer == -1, said->what());
    driver.finish_streams();
  });
}

TEST_CASE("a chunk size that gives too many chunks is refused") {
  on_devices(1, false, [](thread_rank& me, const rank_device& mine) {
    doubles buffer(mine.driver(), 1, device);
    const auto far = cuda::device(buffer.data(), std::size_t{1} << 33);
    const auto said = me.expect(errc::invalid_argument, [&] {
      hocket::send(me.comm(), far, peer{0}, tag{0}, with(mine.order(), cuda::staging{1}));
    });
    me.check(said && contains(said->reason(), "too many chunks"), "wrong text");
  });
}

TEST_CASE("after a message has failed, the caller can use its memory in stream order, while the request exists") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    host_machine machine;
    processes all(machine, {{0, 0}, {1, 0}});
    on_ranks(2, [&](thread_rank& me) {
      host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
      const rank_device mine(driver);
      doubles buffer(driver, 16 * chunk, device);
      driver.be_lazy(seed);
      const auto options = with(mine.order(), small_chunks);
      const auto view = cuda::device(buffer.span());
      if (me.rank() == 0) driver.inject(40 + static_cast<int>(seed), status::illegal_address);
      try {
        hocket::request started = me.rank() == 0 ? hocket::send_async(me.comm(), view, peer{1}, tag{0}, options)
                                                 : hocket::recv_async(me.comm(), view, peer{0}, tag{0}, options);
        try {
          started.wait();
          hocket::barrier(me.comm());
        } catch (const hocket::error&) {
          driver.queue(mine.stream(), [&] { std::fill(buffer.span().begin(), buffer.span().end(), -1.0); });
          driver.finish_streams();
          const std::vector<double> found(buffer.span().begin(), buffer.span().end());
          me.check(found == std::vector<double>(buffer.size(), -1.0), "written to after its call had failed");
        }
      } catch (const hocket::error&) {}
      driver.finish_streams();
    });
  }
}

TEST_CASE("any driver call that fails during a message is reported on both ranks, and nothing leaks") {
  for (const bool lazy : {false, true}) {
    int failures = 0;
    for (int call = 0;; ++call) {
      host_machine machine;
      processes all(machine, {{0, 0}, {1, 0}});
      std::vector<std::string> said(2);
      std::vector<char> used_again(2, true);
      int calls = 0;  // of rank 0, until its messages are complete
      on_ranks(2, [&](thread_rank& me) {
        host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
        const rank_device mine(driver);
        const std::size_t there = 5 * chunk - 3, back = 4 * chunk;
        doubles out(driver, me.rank() == 0 ? there : back, device), in(driver, me.rank() == 0 ? back : there, device);
        if (lazy) driver.be_lazy(static_cast<unsigned>(call));
        if (me.rank() == 0) driver.inject(call, status::illegal_address);
        const peer other{1 - me.rank()};
        try {
          hocket::send_recv(me.comm(), cuda::device(out.span()), other, cuda::device(in.span()), other, tag{0},
                            with(mine.order(), small_chunks));
          hocket::barrier(me.comm());
          if (me.rank() == 0) calls = driver.calls();
        } catch (const hocket::error& cause) {
          said[static_cast<std::size_t>(me.rank())] = cause.what();
          // The caller can use the memory again in stream order. The failed call may be one on the stream.
          in.write(mine.stream(), std::vector<double>(in.size(), -1.0));
          driver.finish_streams();
          used_again[static_cast<std::size_t>(me.rank())] =
              in.span()[0] == -1.0 && in.span().back() == -1.0 && in.span()[in.size() / 2] == -1.0;
        }
        driver.finish_streams();
      });
      INFO("call " << call << ", " << all.driver(0).failed_call() << "\n" << said[0] << "\n" << said[1]);
      check_clean(machine, all);
      CHECK(all.driver(0).copies_of_freed == 0);
      CHECK((used_again[0] && used_again[1]));
      if (!said[0].empty()) {
        ++failures;
        CHECK(contains(said[0], "error 700"));
        CHECK(contains(said[1], "rank 0 reports"));
      } else {
        CHECK(said[1].empty());
        CHECK((call >= calls || puts_back(all.driver(0).failed_call())));
      }
      if (!all.driver(0).has_failed()) break;
    }
    CHECK(failures > 30);
  }
}
