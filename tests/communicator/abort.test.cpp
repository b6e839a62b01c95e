// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Another thread ends a call, or what makes a communicator of another, while a rank does not come.
#include "support/abort_latency.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/shrink.hpp>
#include <hocket/communicator/split.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <thread>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

/// Rank 0 of `ranks` is in `call`, and so are the others but rank 1, which is not until it is over.
template <class Call>
void check_among(int ranks, const std::string& name, Call call) {
  abort_latency found(name + ", " + std::to_string(ranks) + " ranks");
  while (found.wants_more()) {
    std::atomic<bool> over{false};
    latency took;
    on_ranks(ranks, [&](thread_rank& me) {
      me.at(name);
      if (me.rank() >= 2) {
        try {
          call(me.comm());
          me.complain("no error");
        } catch (const hocket::error&) {}
      }
      while (me.rank() == 1 && !over.load()) std::this_thread::sleep_for(1ms);
      if (me.rank() != 0) return;
      stopwatch watch;
      watch.waits();
      std::thread other([&] {
        std::this_thread::sleep_for(30ms);
        watch.start();
        me.comm().abort();
      });
      me.expect(hocket::errc::aborted, [&] { call(me.comm()); });
      took = watch.stop();
      other.join();
      over = true;
    });
    found.add(took);
  }
  found.check();
}

template <class Call>
void check(const std::string& name, Call call) {
  for (const int ranks : {2, 3, 5}) check_among(ranks, name, call);
}

}  // namespace

TEST_CASE("abort ends collectives while a rank does not come, and the others hear of it") {
  for (const std::size_t size : {std::size_t{2}, std::size_t{10'000}}) {
    const std::vector<float> in(size);
    check("all_reduce of threads, " + std::to_string(size) + " elements", [&](hocket::local::communicator& comm) {
      std::vector<float> out(size);
      hocket::all_reduce(comm, in, out);
    });
    check("ring of threads, " + std::to_string(size) + " elements", [&](hocket::local::communicator& comm) {
      std::vector<float> out(size);
      hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::ring));
    });
  }
}

TEST_CASE("abort ends split while a rank does not come") {
  check("split of threads", [](hocket::local::communicator& comm) { hocket::split(comm, hocket::color{0}); });
}

TEST_CASE("abort ends shrink while a rank does not come") {
  check("shrink of threads", [](hocket::local::communicator& comm) {
    if (comm.rank() == 0) {
      hocket::shrink(comm);
    } else {
      hocket::shrink(comm, hocket::with(hocket::timeout(1s)));
    }
  });
}
