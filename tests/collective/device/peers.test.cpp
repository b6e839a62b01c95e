// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Calls between devices that reach each other's memory are bound once and enqueued many times, with the bits of the
// host's calls. They are refused on all ranks or on none, and a failure of one rank ends them on all.
#include "engine/stream/device_ranks.hpp"
#include "engine/stream/plans.hpp"
#include "support/elements.hpp"
#include "support/text.hpp"
#include "support/thread_ranks.hpp"

#include <hocket/group/peers.hpp>
#include <hocket/hocket.hpp>
#include <hocket/plan/listed.hpp>

#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;
namespace gpu = hocket::cuda;
using hocket::errc;

namespace {

struct queue_kernels {
  template <class Op, class T>
  static const hocket::kernel::stream_kernel* each() {
    return &queue_kernel_of<Op, T>;
  }
  template <class Op, class T>
  static const hocket::kernel::stream_kernel* fused() {
    return &queue_kernel_of<Op, T>;
  }
};

using domain_type = hocket::local::communicator::domain_type;
using peers_type = gpu::peers_of<domain_type, host_driver, queue_kernels>;

/// A rank with a device and a stream on it.
class peer_rank {
 public:
  peer_rank(thread_rank& me, host_driver& driver) : me_(me), driver_(driver) {
    if (driver_.stream_create(&stream_, ipc::stream_non_blocking) != status::success) std::abort();
  }
  peer_rank(const peer_rank&) = delete;
  peer_rank& operator=(const peer_rank&) = delete;
  ~peer_rank() {
    driver_.stream_destroy(stream_);
    for (const ipc::address each : buffers_) driver_.mem_free(each);
  }

  thread_rank& me() { return me_; }
  hocket::local::communicator& comm() { return me_.comm(); }
  int rank() const { return me_.rank(); }
  int size() const { return me_.size(); }
  host_driver& driver() { return driver_; }
  gpu::stream_of<host_driver> order() const { return {&driver_, stream_}; }

  template <class Peers = peers_type>
  Peers reach(std::chrono::nanoseconds drain = 2s) {
    ipc::group_options how;
    how.process = driver_.mark();
    how.connections = 32;
    how.has_ended = [](int) { return false; };
    how.drain = drain;
    return Peers::reach(comm(), order(), rank_timeout, how, std::source_location::current());
  }

  template <class T>
  auto buffer(std::size_t size) {
    ipc::address at = 0;
    // Tried twice, because an injected fault is meant for the library.
    if (driver_.mem_alloc(&at, (size + 1) * sizeof(T)) != status::success) {
      if (driver_.mem_alloc(&at, (size + 1) * sizeof(T)) != status::success) std::abort();
    }
    buffers_.push_back(at);
    std::memset(reinterpret_cast<void*>(at), 0xa5, (size + 1) * sizeof(T));
    return gpu::device(reinterpret_cast<T*>(at), size);
  }
  /// Writes in stream order, as a kernel would.
  template <class T>
  void write(hocket::device_buffer<T, gpu::device_memory> to, const std::vector<T>& values) {
    driver_.queue(stream_, [=] { std::copy(values.begin(), values.end(), to.data()); });
  }

 private:
  thread_rank& me_;
  host_driver& driver_;
  ipc::stream_handle stream_ = nullptr;
  std::vector<ipc::address> buffers_;
};

enum class layout_of_ranks { threads, processes, pairs_of_devices };

/// Runs `body(rank)` on threads with a device each, and checks that no resources are left.
void on_peers(int ranks, layout_of_ranks kind, const std::function<void(peer_rank&)>& body) {
  host_machine machine{2};
  std::vector<where_rank_runs> where;
  for (int rank = 0; rank < ranks; ++rank) {
    where.push_back(
        {kind == layout_of_ranks::threads ? 1 : rank + 1, kind == layout_of_ranks::pairs_of_devices ? rank % 2 : 0});
  }
  processes all(machine, where);
  for (std::size_t rank = 0; rank < all.size(); ++rank) all.driver(rank).queue_streams();
  on_ranks(ranks, [&](thread_rank& me) {
    peer_rank mine(me, all.driver(static_cast<std::size_t>(me.rank())));
    body(mine);
  });
  check_clean(machine, all);
  CHECK(machine.freed_while_used == 0);
}

template <class T>
void expect_equal(peer_rank& me, hocket::device_buffer<T, gpu::device_memory> got, const std::vector<T>& expected,
                  const char* what) {
  const std::span<const T> values(got.data(), got.size());
  me.me().check(same_bytes<T>(values, expected),
                [&] { return std::string(what) + ": " + first_difference<T>(values, expected); });
}

/// Checks all calls on one size, several times on the same buffers with changing contents.
void check_calls(peer_rank& me, peers_type& peers, std::size_t size) {
  using T = float;
  const auto ranks = static_cast<std::size_t>(me.size());
  const auto in = me.buffer<T>(size), wide_in = me.buffer<T>(size * ranks);
  const auto sum = me.buffer<T>(size), scattered = me.buffer<T>(size), both = me.buffer<T>(size);
  const auto gathered = me.buffer<T>(size * ranks), exchanged = me.buffer<T>(size * ranks), told = me.buffer<T>(size);
  const hocket::root last{me.size() - 1};
  auto all_reduce = peers.all_reduce(in, sum, std::plus<>{});
  auto two_shot = peers.all_reduce(hocket::in_place(both), std::plus<>{}, hocket::with(hocket::two_shot));
  const auto around = me.buffer<T>(size), climbed = me.buffer<T>(size), doubled = me.buffer<T>(size);
  auto ring = peers.all_reduce(in, around, std::plus<>{}, hocket::with(hocket::ring));
  auto tree = peers.all_reduce(in, climbed, std::plus<>{}, hocket::with(hocket::double_tree(3)));
  auto doubling = peers.all_reduce(in, doubled, std::plus<>{}, hocket::with(hocket::recursive_doubling));
  auto reduce_scatter = peers.reduce_scatter(wide_in, scattered, std::plus<>{});
  auto all_gather = peers.all_gather(in, gathered);
  auto all_to_all = peers.all_to_all(wide_in, exchanged);
  auto broadcast = peers.broadcast(told, last);
  for (int round = 0; round < 3; ++round) {
    const auto mine = samples<T>(me.rank() + 10 * round, size), wide = samples<T>(me.rank() + 10 * round, size * ranks);
    me.write(in, mine);
    me.write(both, mine);
    me.write(wide_in, wide);
    me.write(told, mine);
    for (auto* const each :
         {&all_reduce, &two_shot, &ring, &tree, &doubling, &reduce_scatter, &all_gather, &all_to_all, &broadcast}) {
      each->enqueue(me.order());
    }
    broadcast.wait();
    std::vector<T> expected(size), expected_wide(size * ranks);
    hocket::all_reduce(me.comm(), mine, expected, std::plus<>{}, hocket::with(hocket::two_shot));
    expect_equal(me, sum, expected, "all_reduce");
    expect_equal(me, both, expected, "all_reduce in place");
    hocket::all_reduce(me.comm(), mine, expected, std::plus<>{}, hocket::with(hocket::ring));
    expect_equal(me, around, expected, "ring");
    hocket::all_reduce(me.comm(), mine, expected, std::plus<>{}, hocket::with(hocket::double_tree(3)));
    expect_equal(me, climbed, expected, "double_tree");
    hocket::all_reduce(me.comm(), mine, expected, std::plus<>{}, hocket::with(hocket::recursive_doubling));
    expect_equal(me, doubled, expected, "recursive_doubling");
    hocket::reduce_scatter(me.comm(), wide, expected, std::plus<>{}, hocket::with(hocket::direct));
    expect_equal(me, scattered, expected, "reduce_scatter");
    hocket::all_gather(me.comm(), mine, expected_wide);
    expect_equal(me, gathered, expected_wide, "all_gather");
    hocket::all_to_all(me.comm(), wide, expected_wide);
    expect_equal(me, exchanged, expected_wide, "all_to_all");
    expected = mine;
    hocket::broadcast(me.comm(), expected, last);
    expect_equal(me, told, expected, "broadcast");
  }
}

}  // namespace

TEST_CASE("bound calls give the host's bits each time they are enqueued") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    for (const auto kind : {layout_of_ranks::threads, layout_of_ranks::processes, layout_of_ranks::pairs_of_devices}) {
      INFO(ranks << " ranks");
      on_peers(ranks, kind, [&](peer_rank& me) {
        auto peers = me.reach();
        me.me().check(peers.one_device() == (kind != layout_of_ranks::pairs_of_devices || me.size() == 1),
                      "one_device() is wrong");
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{1001}}) check_calls(me, peers, size);
        peers.close();
      });
    }
  }
}

namespace {

/// Checks all_reduce and reduce_scatter, with operations and exactness for which the host's bits are fixed.
template <class T, class Op, class... Exactness>
void check_exactly(peer_rank& me, peers_type& peers, std::size_t size, const Op& op, const Exactness&... required) {
  const auto ranks = static_cast<std::size_t>(me.size());
  const auto in = me.buffer<T>(size), wide_in = me.buffer<T>(size * ranks);
  const auto sum = me.buffer<T>(size), both = me.buffer<T>(size), scattered = me.buffer<T>(size);
  auto fused = peers.all_reduce(in, sum, op, hocket::with(required...));
  auto two_shot = peers.all_reduce(hocket::in_place(both), op, hocket::with(required..., hocket::two_shot));
  auto reduce_scatter = peers.reduce_scatter(wide_in, scattered, op, hocket::with(required...));
  for (int round = 0; round < 2; ++round) {
    const auto mine = samples<T>(me.rank() + 10 * round, size), wide = samples<T>(me.rank() + 10 * round, size * ranks);
    me.write(in, mine);
    me.write(both, mine);
    me.write(wide_in, wide);
    for (auto* const each : {&fused, &two_shot, &reduce_scatter}) each->enqueue(me.order());
    reduce_scatter.wait();
    std::vector<T> expected(size);
    hocket::all_reduce(me.comm(), mine, expected, op, hocket::with(required..., hocket::two_shot));
    expect_equal(me, sum, expected, "all_reduce");
    expect_equal(me, both, expected, "all_reduce in place");
    hocket::reduce_scatter(me.comm(), wide, expected, op, hocket::with(required..., hocket::direct));
    expect_equal(me, scattered, expected, "reduce_scatter");
  }
}

}  // namespace

TEST_CASE("bound calls with operations in three parts, and with required exactness, give the host's bits") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    for (const auto kind : {layout_of_ranks::threads, layout_of_ranks::pairs_of_devices}) {
      INFO(ranks << " ranks");
      on_peers(ranks, kind, [&](peer_rank& me) {
        auto peers = me.reach();
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{501}}) {
          check_exactly<float>(me, peers, size, hocket::average{});
          check_exactly<float>(me, peers, size, std::plus<>{}, hocket::require(hocket::rank_count_invariant));
          check_exactly<float>(me, peers, size, hocket::minimum{}, hocket::require(hocket::rank_count_invariant));
          check_exactly<float>(me, peers, size, std::plus<>{}, hocket::require(hocket::fixed_tree));
          check_exactly<hocket::bfloat16>(me, peers, size, std::plus<>{}, hocket::require(hocket::fixed_tree));
          check_exactly<hocket::half>(me, peers, size, hocket::average{}, hocket::require(hocket::fixed_tree));
        }
        peers.close();
      });
    }
  }
}

namespace {

/// one_shot with a shape that claims only rank order.
hocket::plan::listed without_the_tree(int ranks) {
  hocket::plan::listed made("modest", {hocket::plan::collective_kind::all_reduce, 0}, ranks,
                            {.peer_pointers = true, .order = hocket::plan::combination_order::rank_order});
  const hocket::plan::one_shot shot;
  for (int rank = 0; rank < ranks; ++rank) {
    for (unsigned i = 0; i < shot.length(ranks, rank, 0); ++i) made.lane(rank).push_back(shot.at(ranks, rank, 0, i));
  }
  return made;
}

/// A plan that reduces partial results, the `out` of all ranks.
hocket::plan::listed combined_again(int ranks) {
  using namespace hocket::plan;
  listed made("again", {collective_kind::all_reduce, 0}, ranks, {.scratch = 1, .peer_pointers = true});
  for (int rank = 0; rank < ranks; ++rank) {
    made.lane(rank) = {copy({0}, in(0), out(0)),
                       signal(all_peers, 0),
                       hocket::plan::wait(all_peers, 0),
                       load_reduce({0}, out(0), scratch(0)),
                       signal(all_peers, 1),
                       hocket::plan::wait(all_peers, 1)};
  }
  return made;
}

}  // namespace

TEST_CASE("a plan that does not give the required exactness, or combines partial results, is refused on all ranks") {
  on_peers(3, layout_of_ranks::processes, [](peer_rank& me) {
    auto peers = me.reach();
    const auto in = me.buffer<float>(10), out = me.buffer<float>(10);
    const auto refused = [&](const std::string& words, const std::function<void()>& call) {
      const auto cause = me.me().expect(errc::invalid_argument, call);
      me.me().check(cause && std::string(cause->what()).find(words) != std::string::npos,
                    [&] { return std::string("wrong message: ") + cause->what(); });
    };
    const auto tree = hocket::require(hocket::fixed_tree);
    refused("does not combine in the fixed tree", [&] {
      peers.all_reduce(in, out, std::plus<>{}, hocket::with(tree, hocket::algorithm(without_the_tree(3))));
    });
    refused("combines partial results",
            [&] { peers.all_reduce(in, out, hocket::average{}, hocket::with(hocket::algorithm(combined_again(3)))); });
    peers.close();
  });
}

TEST_CASE("if one rank can't bind a call, no rank does, and the group stays usable") {
  on_peers(3, layout_of_ranks::processes, [](peer_rank& me) {
    auto peers = me.reach();
    const auto in = me.buffer<int>(10), out = me.buffer<int>(10), longer = me.buffer<int>(11);
    const auto refused = [&](errc code, const std::string& words, const std::function<void()>& call) {
      const auto cause = me.me().expect(code, call);
      if (!cause) return;
      me.me().check(std::string(cause->what()).find(words) != std::string::npos,
                    [&] { return std::string("wrong message: ") + cause->what(); });
    };
    const bool odd = me.rank() == 1;
    refused(errc::invalid_argument, "in has 10 elements and out 11",
            [&] { peers.all_reduce(in, odd ? longer : out, std::plus<>{}); });
    refused(errc::mismatch, "binds a different plan, length",
            [&] { peers.all_reduce(odd ? longer : in, odd ? longer : out, std::plus<>{}); });
    refused(errc::mismatch, "binds a different plan, length",
            [&] { odd ? peers.all_reduce(in, out, hocket::maximum{}) : peers.all_reduce(in, out, std::plus<>{}); });
    refused(errc::invalid_argument, "the root is rank 3", [&] { peers.broadcast(out, hocket::root{3}); });
    refused(errc::mismatch, "or only one of them binds in place", [&] {
      const auto around = hocket::with(hocket::ring);
      odd ? peers.all_reduce(hocket::in_place(in), std::plus<>{}, around)
          : peers.all_reduce(in, out, std::plus<>{}, around);
    });
    refused(errc::invalid_argument, "pushes, which streams do not support",
            [&] { peers.all_reduce(in, out, std::plus<>{}, hocket::with(hocket::push)); });
    refused(errc::invalid_argument, "combines partial results",
            [&] { peers.all_reduce(in, out, hocket::average{}, hocket::with(hocket::recursive_doubling)); });
    std::vector<int> plain(10);
    refused(errc::invalid_argument, "out was passed as cuda::device(...) and lies in",
            [&] { peers.all_reduce(in, odd ? gpu::device(plain) : out, std::plus<>{}); });
    auto sum = peers.all_reduce(in, out, std::plus<>{});
    refused(errc::invalid_argument, "default stream", [&] {
      sum.enqueue({&me.driver(), reinterpret_cast<ipc::stream_handle>(std::uintptr_t{1})});
    });
    check_calls(me, peers, 100);
    peers.close();
    refused(errc::revoked, "has closed the group", [&] { sum.enqueue(me.order()); });
  });
}

TEST_CASE("the others' timeout names a rank that does not enqueue, and revokes the communicator") {
  for (const int ranks : {2, 3, 5}) {
    on_peers(ranks, layout_of_ranks::processes, [](peer_rank& me) {
      {
        auto peers = me.reach();
        const auto in = me.buffer<float>(1000), out = me.buffer<float>(1000);
        auto sum = peers.all_reduce(in, out, std::plus<>{});
        if (me.rank() != 1) {
          sum.enqueue(me.order());
          const auto limit = hocket::with(hocket::timeout(me.rank() == 0 ? 100ms : 20s));
          const auto cause = me.me().expect(errc::timeout, [&] { sum.wait(limit); });
          me.me().check(cause && cause->context().peer == 1 &&
                            std::string(cause->what()).find("has enqueued 0 operations") != std::string::npos,
                        [&] { return std::string("wrong message: ") + cause->what(); });
          me.me().check(me.comm().revoked(), "not revoked");
        } else {
          me.me().expect(errc::timeout, [&] {
            for (;;) hocket::barrier(me.comm());
          });
        }
        try {
          peers.close();
        } catch (const hocket::error&) {}  // about the abandoned streams
      }
      auto next = hocket::shrink(me.comm());
      hocket::barrier(next);
    });
  }
}

TEST_CASE("a group closes even if the last binding was refused and the call before it was destroyed") {
  for (const auto kind : {layout_of_ranks::threads, layout_of_ranks::processes}) {
    on_peers(3, kind, [](peer_rank& me) {
      auto peers = me.reach();
      const auto in = me.buffer<float>(100), out = me.buffer<float>(100), small = me.buffer<float>(10);
      {
        auto sum = peers.all_reduce(in, out, std::plus<>{}, hocket::with(hocket::two_shot));
        sum.enqueue(me.order());
        sum.wait();
      }
      me.me().expect(errc::invalid_argument, [&] { peers.all_reduce(in, small, std::plus<>{}); });
      peers.close(hocket::with(hocket::timeout(20s)));
    });
  }
}

TEST_CASE("abort ends a close that waits for other ranks, and revokes the communicator") {
  on_peers(2, layout_of_ranks::processes, [](peer_rank& me) {
    {
      auto peers = me.reach();
      if (me.rank() == 0) {
        me.comm().abort();
        me.me().expect(errc::aborted, [&] { peers.close(hocket::with(hocket::timeout(20s))); });
        me.me().check(me.comm().revoked(), "not revoked");
      } else {
        std::this_thread::sleep_for(50ms);
        try {
          peers.close(hocket::with(hocket::timeout(20s)));
        } catch (const hocket::error&) {}  // about the abort
      }
    }
    auto next = hocket::shrink(me.comm());
    hocket::barrier(next);
  });
}

TEST_CASE("calls that ranks enqueue in different orders are a mismatch on all ranks") {
  for (const int ranks : {2, 3}) {
    for (const auto kind : {layout_of_ranks::threads, layout_of_ranks::processes}) {
      on_peers(ranks, kind, [](peer_rank& me) {
        {
          auto peers = me.reach();
          const auto in = me.buffer<float>(100), out = me.buffer<float>(100), other = me.buffer<float>(100);
          auto first = peers.all_reduce(in, out, std::plus<>{});
          auto second = peers.all_reduce(in, other, std::plus<>{});
          for (int i = 0; i < 40; ++i) first.enqueue(me.order());
          first.wait();
          const bool turns = me.rank() == 1;
          const auto cause = me.me().expect(errc::mismatch, [&] {
            (turns ? second : first).enqueue(me.order());
            (turns ? first : second).enqueue(me.order());
            (turns ? first : second).wait();
            for (;;) hocket::barrier(me.comm());  // the last rank to enqueue has detected and reports it
          });
          me.me().check(cause && std::string(cause->what()).find("operation 41") != std::string::npos,
                        [&] { return std::string("wrong message: ") + (cause ? cause->what() : ""); });
          try {
            peers.close();
          } catch (const hocket::error&) {}  // about the abandoned streams
        }
        auto next = hocket::shrink(me.comm());
        hocket::barrier(next);
      });
    }
  }
}

namespace {

/// Kernels of which one launch combines for at most four ranks.
struct kernels_for_four : queue_kernels {
  template <class Op, class T>
  static const hocket::kernel::stream_kernel* fused() {
    static constexpr hocket::kernel::stream_kernel few = [] {
      hocket::kernel::stream_kernel all = queue_kernel_of<Op, T>;
      all.most_fused = 4;
      return all;
    }();
    return &few;
  }
};

}  // namespace

TEST_CASE("all_reduce gives the host's bits if one launch can't combine for all ranks of a device") {
  for (const int ranks : {4, 5}) {
    on_peers(ranks, layout_of_ranks::processes, [](peer_rank& me) {
      auto peers = me.reach<gpu::peers_of<domain_type, host_driver, kernels_for_four>>();
      const auto mine = samples<float>(me.rank(), 100);
      const auto in = me.buffer<float>(100), out = me.buffer<float>(100);
      me.write(in, mine);
      auto sum = peers.all_reduce(in, out, std::plus<>{});
      sum.enqueue(me.order());
      sum.wait();
      std::vector<float> expected(100);
      hocket::all_reduce(me.comm(), mine, expected, std::plus<>{}, hocket::with(hocket::one_shot));
      expect_equal(me, out, expected, "sum");
      peers.close();
    });
  }
}

// As in a program with other buffers each time: the call is destroyed before the streams have executed it.
TEST_CASE("calls that are bound and enqueued once give the host's bits") {
  for (const int ranks : {1, 2, 3, 5, 7, 8}) {
    for (const auto kind : {layout_of_ranks::threads, layout_of_ranks::processes, layout_of_ranks::pairs_of_devices}) {
      INFO(ranks << " ranks");
      on_peers(ranks, kind, [&](peer_rank& me) {
        auto peers = me.reach();
        for (int round = 0; round < 12; ++round) {
          const std::size_t size = static_cast<std::size_t>(1 + 97 * round % 300);
          const auto mine = samples<float>(me.rank() + 10 * round, size);
          const auto in = me.buffer<float>(size), out = me.buffer<float>(size);
          me.write(in, mine);
          peers.all_reduce(in, out, std::plus<>{}).enqueue(me.order());
          const auto all = me.buffer<float>(size * static_cast<std::size_t>(ranks));
          auto last = peers.all_gather(out, all);
          last.enqueue(me.order());
          if (round % 4 != 3) continue;
          last.wait();
          std::vector<float> expected(size);
          hocket::all_reduce(me.comm(), mine, expected, std::plus<>{}, hocket::with(hocket::two_shot));
          for (int rank = 0; rank < ranks; ++rank) {
            expect_equal(me, gpu::device(all.data() + static_cast<std::size_t>(rank) * size, size), expected, "sum");
          }
        }
        peers.close();
      });
    }
  }
}

TEST_CASE("the request of a bound call is complete when the streams have executed the call") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_peers(ranks, layout_of_ranks::processes, [](peer_rank& me) {
      auto peers = me.reach();
      const auto in = me.buffer<float>(100), out = me.buffer<float>(100);
      auto sum = peers.all_reduce(in, out, std::plus<>{});
      hocket::request nothing = sum.completion();
      me.me().check(nothing.test(), "the request of a call that was never enqueued is not complete");
      hocket::barrier(me.comm());
      if (me.rank() == 0) {
        sum.enqueue(me.order());
        hocket::request early = sum.completion();
        if (me.size() > 1) me.me().check(!early.test(), "complete before the others have enqueued");
        hocket::barrier(me.comm());
        while (!early.test()) std::this_thread::yield();
        early.wait();
        me.me().check(!early.error(), "a complete request has failed");
      } else {
        hocket::barrier(me.comm());
        sum.enqueue(me.order());
        sum.completion().wait();
      }
      peers.close();
    });
  }
}

TEST_CASE("the request of a bound call reports the failure of the call") {
  on_peers(3, layout_of_ranks::processes, [](peer_rank& me) {
    {
      auto peers = me.reach();
      const auto in = me.buffer<float>(1000), out = me.buffer<float>(1000);
      auto sum = peers.all_reduce(in, out, std::plus<>{});
      if (me.rank() != 1) {
        sum.enqueue(me.order());
        hocket::request done = sum.completion(hocket::with(hocket::timeout(me.rank() == 0 ? 100ms : 20s)));
        while (me.rank() == 2 && !done.test()) std::this_thread::sleep_for(1ms);
        const auto cause = me.me().expect(errc::timeout, [&] { done.wait(); });
        me.me().check(cause && cause->context().peer == 1, "names another rank");
        me.me().check(done.test() && done.error(), "is not complete");
        me.me().check(me.comm().revoked(), "not revoked");
      } else {
        me.me().expect(errc::timeout, [&] {
          for (;;) hocket::barrier(me.comm());
        });
      }
      try {
        peers.close();
      } catch (const hocket::error&) {}  // about the abandoned streams
    }
    auto next = hocket::shrink(me.comm());
    hocket::barrier(next);
  });
}

TEST_CASE("abort ends a wait for streams on all ranks") {
  on_peers(3, layout_of_ranks::threads, [](peer_rank& me) {
    auto peers = me.reach();
    const auto in = me.buffer<float>(1000), out = me.buffer<float>(1000);
    auto sum = peers.all_reduce(in, out, std::plus<>{});
    if (me.rank() != 1) sum.enqueue(me.order());
    std::thread other([&] {
      std::this_thread::sleep_for(50ms);
      if (me.rank() == 0) me.comm().abort();
    });
    if (me.rank() != 1) {
      const auto begin = std::chrono::steady_clock::now();
      me.me().expect(errc::aborted, [&] { sum.wait(); });
      me.me().check(std::chrono::steady_clock::now() - begin < 5s, "it took too long");
    } else {
      me.me().expect(errc::aborted, [&] {
        for (;;) hocket::barrier(me.comm());
      });
    }
    other.join();
    try {
      peers.close();
    } catch (const hocket::error&) {}
  });
}

namespace {

/// The end of a rank when rank 0's driver has a fault: the stage of the fault, the first error and its stage, and
/// whether a result without an error is right.
struct life {
  stage hit = stage::none;
  stage at = stage::none;
  std::string failed;
  bool right = true;
};

/// Runs a rank. If `asks`, it waits by a request once the stream is idle.
life live(peer_rank& me, bool asks) {
  life end;
  stage now = stage::joining;
  const auto begin = [&](stage next) {
    if (end.hit == stage::none && me.driver().has_failed()) end.hit = now;
    now = next;
  };
  const auto note = [&](const hocket::error& cause) {
    begin(now);
    if (!end.failed.empty()) return;
    end.at = now;
    end.failed = cause.what();
  };
  try {
    auto peers = me.reach(1s);
    try {
      begin(stage::own);
      const auto in = me.buffer<float>(100), out = me.buffer<float>(100);
      const auto mine = samples<float>(me.rank(), 100);
      begin(stage::binding);
      auto sum = peers.all_reduce(in, out, std::plus<>{}, hocket::with(hocket::two_shot));
      begin(stage::own);
      me.write(in, mine);
      begin(stage::enqueueing);
      sum.enqueue(me.order());
      begin(stage::finishing);
      if (asks) {
        while (host_queue::of(me.order().handle).busy()) std::this_thread::yield();
        hocket::request done = sum.completion();
        if (done.test()) done.wait();
      } else {
        sum.wait();
      }
      const auto expected = on_host<float>(hocket::plan::two_shot{}, me.size(), 100, std::plus<>{});
      end.right = same_bytes<float>({out.data(), 100}, expected[static_cast<std::size_t>(me.rank())]);
    } catch (const hocket::error& cause) {
      note(cause);
    }
    begin(stage::closing);
    peers.close();
  } catch (const hocket::error& cause) {
    note(cause);
  }
  begin(stage::none);
  return end;
}

}  // namespace

TEST_CASE("driver errors of one rank are reported, all ranks end, and no result without an error is wrong") {
  const auto every = every_code();  // in turn; engine/stream/faults makes each function return each code
  const std::vector<status> codes(every.begin(), every.end());
  int first_wait = 0;  // earlier calls do not depend on `asks`
  for (const bool asks : {false, true}) {
    for (int call = first_wait, failed = 1; failed != 0; ++call) {
      const status code = codes[static_cast<std::size_t>(7 * call + (asks ? 31 : 0)) % codes.size()];
      host_machine machine{2};
      processes all(machine, {{1, 0}, {2, 0}});
      for (std::size_t rank = 0; rank < 2; ++rank) all.driver(rank).queue_streams();
      bool may_be_silent = false;
      std::vector<life> ends(2);
      on_ranks(2, [&](thread_rank& me) {
        const auto rank = static_cast<std::size_t>(me.rank());
        peer_rank mine(me, all.driver(rank));
        if (rank == 0) all.driver(0).inject(call, code);
        ends[rank] = live(mine, asks && rank == 0);
        if (rank == 0) {
          may_be_silent = may_fail_silently(all.driver(0), code, ends[0].hit);
          failed = all.driver(0).has_failed() ? 1 : 0;
          all.driver(0).forget_faults();
        }
      });
      INFO("call " << call << ", " << all.driver(0).failed_call() << " returns " << static_cast<int>(code)
                   << " at stage " << static_cast<int>(ends[0].hit) << ": " << ends[0].failed << " | "
                   << ends[1].failed);
      CHECK(ends[0].right);
      CHECK(ends[1].right);
      CHECK(machine.freed_while_used == 0);
      CHECK(machine.freed_while_open == 0);
      if (first_wait == 0 && ends[0].hit == stage::finishing) first_wait = call;
      if (failed == 0) {
        CHECK(ends[0].failed + ends[1].failed == "");
        continue;
      }
      CHECK((may_be_silent || !ends[0].failed.empty()));
      if (ends[0].failed.empty()) continue;
      CHECK(contains(ends[0].failed, words_for_failed(all.driver(0), code)));
      CHECK(ends[0].at == ends[0].hit);
      if (ends[0].at < stage::finishing) CHECK_FALSE(ends[1].failed.empty());  // later, it may have completed
    }
  }
}
