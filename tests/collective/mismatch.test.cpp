// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// If calls differ, all ranks report a mismatch within milliseconds, with both call sites.
// unsanitized: it measures
#include "collective/cases.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_gather_v.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/all_to_all_v.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/collective/broadcast.hpp>
#include <hocket/collective/gather.hpp>
#include <hocket/collective/gather_v.hpp>
#include <hocket/collective/reduce.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/collective/scatter.hpp>
#include <hocket/group/local.hpp>
#include <hocket/operation/operations.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

using communicator = hocket::local::communicator;

std::string site(int line) { return "mismatch.test.cpp:" + std::to_string(line); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr double promised_milliseconds = 100;
#else
constexpr double promised_milliseconds = 10;
#endif

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) / 2];
}

/// Rank `odd_one` runs `one`, the others `other`: every rank fails with `mismatch`, with every text of `says`.
void check(const char* name, int ranks, const std::function<void(communicator&)>& one,
           const std::function<void(communicator&)>& other, const std::vector<std::string>& says) {
  for (const int odd_one : {0, ranks - 1}) {
    INFO(name << ", " << ranks << " ranks, rank " << odd_one << " differs");
    std::mutex mutex;
    std::vector<double> milliseconds;
    // Threads that outnumber the cores may have to wait for a core, so only the median must be in time.
    for (int tries = 0; tries == 0 || (tries < 8 && median(milliseconds) >= promised_milliseconds); ++tries) {
      on_ranks(ranks, [&](thread_rank& me) {
        me.at(name);
        const auto begin = std::chrono::steady_clock::now();
        const auto found = me.expect(hocket::errc::mismatch, [&] {
          (me.rank() == odd_one ? one : other)(me.comm());
          hocket::barrier(me.comm());  // a call that waits for no rank may fail only in the next
        });
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        for (const std::string& text : says) {
          me.check(found && std::string(found->what()).find(text) != std::string::npos,
                   [&] { return "the message lacks '" + text + "': " + (found ? found->what() : ""); });
        }
        me.check(found && found->context().peer >= 0, "names no peer");
        // The text may come from another rank, for which "this rank" would be wrong.
        me.check(found && std::string(found->what()).find("this rank") == std::string::npos,
                 "does not name a rank by its number");
        me.check(me.comm().revoked(), "not revoked");
        me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
        const std::lock_guard lock(mutex);
        milliseconds.push_back(took.count());
      });
    }
    CHECK(median(milliseconds) < promised_milliseconds);
    CHECK(*std::max_element(milliseconds.begin(), milliseconds.end()) < 1000);
  }
}

}  // namespace

TEST_CASE("calls that differ are reported on every rank, with both call sites") {
  const std::string here = site(__LINE__ + 4), there = site(__LINE__ + 10);
  const auto reduces = [](std::size_t size, auto op, auto... properties) {
    return [=](communicator& comm) {
      std::vector<float> data(size, 1.0F);
      hocket::all_reduce(comm, hocket::in_place(data), op, hocket::with(properties...));
    };
  };
  const auto reduces_elsewhere = [](std::size_t size, auto op, auto... properties) {
    return [=](communicator& comm) {
      std::vector<float> data(size, 1.0F);
      hocket::all_reduce(comm, hocket::in_place(data), op, hocket::with(properties...));
    };
  };
  const std::plus<> sum;
  const hocket::maximum maximum;
  for (const int ranks : {2, 3, 5}) {
    check("counts of one line", ranks, reduces(1, sum), reduces_elsewhere(2, sum),
          {"all_reduce of 1 elements of (float", "all_reduce of 2 elements", here, there});
    check("counts of one line and of many", ranks, reduces(14, sum), reduces_elsewhere(15, sum),
          {"all_reduce of 14 elements of (float", "all_reduce of 15 elements", here, there});
    check("counts of messages", ranks, reduces(300, sum, hocket::ring), reduces_elsewhere(360, sum, hocket::ring),
          {"of 300 elements", "of 360 elements", "by ring", here, there});
    check("operations of one line", ranks, reduces(1, sum), reduces_elsewhere(1, maximum), {"plus", "maximum", here});
    check("operations over peers' memory", ranks, reduces(300, sum, hocket::two_shot),
          reduces_elsewhere(300, maximum, hocket::two_shot), {"plus", "maximum", here, there});
    check("operations over messages", ranks, reduces(300, sum, hocket::ring),
          reduces_elsewhere(300, maximum, hocket::ring), {"plus", "maximum", here, there});
    check("algorithms", ranks, reduces(300, sum, hocket::two_shot), reduces_elsewhere(300, sum, hocket::ring),
          {"two_shot", "ring", here, there});
    check("algorithms over messages", ranks, reduces(300, sum, hocket::recursive_doubling),
          reduces_elsewhere(300, sum, hocket::ring), {"recursive_doubling", "by ring", here, there});
    check("types", ranks, reduces(2, sum),
          [](communicator& comm) {
            std::vector<double> data(2);
            hocket::all_reduce(comm, hocket::in_place(data));
          },
          {"(float", "(double", here});
    const auto broadcasts = [](int root) {
      return [root](communicator& comm) {
        std::vector<float> data(300);
        hocket::broadcast(comm, data, hocket::root{root});
      };
    };
    check("roots", ranks, broadcasts(0), broadcasts(1), {"from root 0", "from root 1"});
    check("collectives", ranks, reduces(300, sum), broadcasts(0), {"all_reduce", "broadcast", here});
    const auto collects = [](int root, std::size_t size, auto op, auto... properties) {
      return [=](communicator& comm) {
        std::vector<float> data(size, 1.0F);
        hocket::reduce(comm, hocket::in_place(data), op, hocket::root{root}, hocket::with(properties...));
      };
    };
    check("roots of reduce", ranks, collects(0, 300, sum), collects(1, 300, sum), {"to root 0", "to root 1"});
    check("roots of reduce over messages", ranks, collects(0, 300, sum, hocket::binomial),
          collects(1, 300, sum, hocket::binomial), {"to root 0", "to root 1"});
    check("counts of reduce", ranks, collects(1, 2, sum), collects(1, 3, sum), {"of 2 elements", "of 3 elements"});
    check("operations of reduce", ranks, collects(0, 300, sum), collects(0, 300, maximum), {"plus", "maximum"});
    check("reduce and all_reduce", ranks, reduces(300, sum), collects(0, 300, sum), {"all_reduce of", " reduce of"});
    const auto gathers = [](int root, std::size_t size, auto... properties) {
      return [=](communicator& comm) {
        std::vector<float> data(size), all(size * static_cast<std::size_t>(comm.size()));
        hocket::gather(comm, data, all, hocket::root{root}, hocket::with(properties...));
      };
    };
    const auto scatters = [](int root, std::size_t size, auto... properties) {
      return [=](communicator& comm) {
        std::vector<float> data(size), all(size * static_cast<std::size_t>(comm.size()));
        hocket::scatter(comm, all, data, hocket::root{root}, hocket::with(properties...));
      };
    };
    check("roots of gather", ranks, gathers(0, 300), gathers(1, 300), {"to root 0", "to root 1"});
    check("counts of gather", ranks, gathers(0, 2, hocket::flat), gathers(0, 3, hocket::flat), {"of 2", "of 3"});
    check("roots of scatter", ranks, scatters(0, 300), scatters(1, 300), {"from root 0", "from root 1"});
    check("counts of scatter", ranks, scatters(0, 2, hocket::flat), scatters(0, 3, hocket::flat), {"of 2", "of 3"});
    check("gather and scatter", ranks, gathers(0, 300), scatters(0, 300), {"gather of", "scatter of"});
    check(
        "order", ranks,
        [](communicator& comm) {
          std::vector<float> data(300), all(300U * static_cast<unsigned>(comm.size()));
          hocket::all_reduce(comm, hocket::in_place(data));
          hocket::all_gather(comm, data, all);
        },
        [](communicator& comm) {
          std::vector<float> data(300), all(300U * static_cast<unsigned>(comm.size()));
          hocket::all_gather(comm, data, all);
          hocket::all_reduce(comm, hocket::in_place(data));
        },
        {"all_reduce", "all_gather"});
  }
}

namespace {

/// Each makes a call with root 1.
constexpr auto sums_on_root = [](std::size_t size, auto... properties) {
  return [=](communicator& comm) {
    std::vector<float> data(size, 1.0F);
    hocket::reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::root{1}, hocket::with(properties...));
  };
};
constexpr auto gathers_on_root = [](std::size_t size, auto... properties) {
  return [=](communicator& comm) {
    std::vector<float> data(size), all(size * static_cast<std::size_t>(comm.size()));
    hocket::gather(comm, data, all, hocket::root{1}, hocket::with(properties...));
  };
};
constexpr auto scatters_from_root = [](std::size_t size, auto... properties) {
  return [=](communicator& comm) {
    std::vector<float> data(size), all(size * static_cast<std::size_t>(comm.size()));
    hocket::scatter(comm, all, data, hocket::root{1}, hocket::with(properties...));
  };
};

std::string name_of(hocket::binomial_t) { return " by binomial"; }
std::string name_of(hocket::ring_t) { return " by ring"; }
std::string name_of(hocket::flat_t) { return " by flat"; }
std::string name_of(hocket::direct_t) { return " by direct"; }

/// Checks all pairs of algorithms, in both directions, of calls with 300 elements on one rank and 3000 on the others.
template <class Make, class... Algorithms>
void check_pairs(const char* name, int ranks, Make make, Algorithms... algorithms) {
  const auto pair = [&](auto one, auto other) {
    if constexpr (!std::is_same_v<decltype(one), decltype(other)>) {
      check(name, ranks, make(300, one), make(3000, other),
            {"of 300 elements", "of 3000 elements", name_of(one), name_of(other)});
    }
  };
  const auto with_all = [&](auto one) { (pair(one, algorithms), ...); };
  (with_all(algorithms), ...);
}

}  // namespace

TEST_CASE("counts for which ranks run different algorithms of a call with a root are reported on every rank") {
  const auto by_messages = hocket::require(hocket::checksummed);
  for (const int ranks : {2, 3, 5}) {
    check_pairs("reduce", ranks, sums_on_root, hocket::binomial, hocket::ring, hocket::direct);
    check_pairs("gather", ranks, gathers_on_root, hocket::binomial, hocket::flat, hocket::direct);
    check_pairs("scatter", ranks, scatters_from_root, hocket::binomial, hocket::flat, hocket::direct);
    check("chosen by count, reduce", ranks, sums_on_root(1), sums_on_root(20'000),
          {"of 1 elements", "of 20000 elements"});
    check("chosen by count, gather", ranks, gathers_on_root(1), gathers_on_root(20'000), {" by flat", " by direct"});
    check("chosen by count, scatter", ranks, scatters_from_root(1), scatters_from_root(20'000),
          {" by flat", " by direct"});
    check("chosen by count, reduce over messages", ranks, sums_on_root(1, by_messages),
          sums_on_root(20'000, by_messages), {"of 1 elements", "of 20000 elements"});
    check("chosen by count, gather over messages", ranks, gathers_on_root(1, by_messages),
          gathers_on_root(20'000, by_messages), {"of 1 elements", "of 20000 elements"});
    check("chosen by count, scatter over messages", ranks, scatters_from_root(1, by_messages),
          scatters_from_root(20'000, by_messages), {"of 1 elements", "of 20000 elements"});
  }
}

TEST_CASE("a mismatch of an operation that is not waited for is reported by the operation that is") {
  struct memory {
    std::vector<float> data, part, gathered;
  };
  for (const std::size_t size : {std::size_t{300}, std::size_t{600'000}}) {
    // Allocated before the time is measured: the thread sanitizer takes 100 ms for it.
    std::vector<memory> of_rank(2);
    for (memory& each : of_rank)
      each = {std::vector<float>(size), std::vector<float>(size), std::vector<float>(2 * size)};
    const auto mine = [&](communicator& comm) -> memory& { return of_rank[static_cast<std::size_t>(comm.rank())]; };
    check(
        "order of asynchronous operations", 2,
        [&](communicator& comm) {
          auto& [data, part, gathered] = mine(comm);
          auto first = hocket::all_reduce_async(comm, hocket::in_place(data));
          auto second = hocket::all_gather_async(comm, part, gathered);
          second.wait();
          first.wait();
        },
        [&](communicator& comm) {
          auto& [data, part, gathered] = mine(comm);
          auto first = hocket::all_gather_async(comm, part, gathered);
          auto second = hocket::all_reduce_async(comm, hocket::in_place(data));
          second.wait();
          first.wait();
        },
        {"all_reduce", "all_gather"});
  }
}

TEST_CASE("if no rank waited in several calls that differ, the next call reports the first of them") {
  const auto broadcasts = [](std::size_t size, int root, auto... properties) {
    return [=](communicator& comm) {
      std::vector<float> data(size);
      hocket::broadcast(comm, data, hocket::root{root}, hocket::with(properties...));
    };
  };
  const auto spreads_twice = [=](int root) {
    return [=](communicator& comm) {
      broadcasts(20, root, hocket::binomial)(comm);
      broadcasts(30, 0, hocket::binomial)(comm);
      std::vector<float> sum(1);
      hocket::all_reduce(comm, hocket::in_place(sum));
    };
  };
  for (const int ranks : {2, 3, 5}) {
    check("roots over messages", ranks, spreads_twice(0), spreads_twice(1),
          {"broadcast of 20 elements", "from root 1", "mismatch.test.cpp"});
  }
}

TEST_CASE("counts that differ between ranks are reported, even if sums and longest blocks are equal") {
  const std::string here = site(__LINE__ + 7);
  const auto gathers = [](std::size_t first, std::size_t second, auto... properties) {
    return [=](communicator& comm) {
      std::vector<std::size_t> lengths(static_cast<std::size_t>(comm.size()), 9);
      lengths[0] = first, lengths[1] = second;
      const std::vector<float> in(lengths[static_cast<std::size_t>(comm.rank())]);
      std::vector<float> out(first + second + 9 * (lengths.size() - 2));
      hocket::all_gather_v(comm, in, out, hocket::counts{lengths}, hocket::with(properties...));
    };
  };
  const auto scatters = [](std::size_t first, std::size_t second) {
    return [=](communicator& comm) {
      std::vector<std::size_t> lengths(static_cast<std::size_t>(comm.size()), 9);
      lengths[0] = first, lengths[1] = second;
      const std::vector<float> in(first + second + 9 * (lengths.size() - 2));
      std::vector<float> out(lengths[static_cast<std::size_t>(comm.rank())]);
      hocket::reduce_scatter_v(comm, in, out, hocket::counts{lengths});
    };
  };
  for (const int ranks : {2, 3, 5}) {
    check("counts of all_gather_v", ranks, gathers(2, 7), gathers(7, 2),
          {"all_gather_v of up to", "with other counts for some rank", here});
    check("counts of all_gather_v over messages", ranks, gathers(2, 9, hocket::ring), gathers(9, 2, hocket::ring),
          {"all_gather_v of up to 9", "by ring", here});
    check("counts of reduce_scatter_v", ranks, scatters(2, 7), scatters(7, 2),
          {"reduce_scatter_v of up to", "mismatch.test"});
    const auto collects = [](std::size_t first, std::size_t others) {
      return [=](communicator& comm) {
        std::vector<std::size_t> lengths(static_cast<std::size_t>(comm.size()), others);
        lengths[0] = first;
        std::vector<float> data(comm.rank() == 0 ? first : others), all(first + others * (lengths.size() - 1));
        hocket::gather_v(comm, data, all, hocket::counts{lengths}, hocket::root{1});
      };
    };
    check("counts of gather_v", ranks, collects(2, 7), collects(7, 2), {"gather_v"});
    check("with and without counts", ranks, gathers(9, 9),
          [](communicator& comm) {
            std::vector<float> in(9), out(9U * static_cast<unsigned>(comm.size()));
            hocket::all_gather(comm, in, out);
          },
          {"all_gather_v", "all_gather of 9"});
  }
}

TEST_CASE("a rank that sends another number than its peer expects fails all ranks, with both numbers in the error") {
  const auto exchanges = [](std::size_t sent, std::size_t received, auto... properties) {
    return [=](communicator& comm) {
      const auto ranks = static_cast<std::size_t>(comm.size()), self = static_cast<std::size_t>(comm.rank());
      std::vector<std::size_t> to(ranks, sent), from(ranks, received);
      to[self] = from[self] = 1;
      const std::vector<float> in(1 + sent * (ranks - 1));
      std::vector<float> out(1 + received * (ranks - 1));
      hocket::all_to_all_v(comm, in, out, hocket::send_counts{to}, hocket::receive_counts{from},
                           hocket::with(properties...));
    };
  };
  const auto said = [](std::size_t sent, std::size_t expected) {
    return std::vector<std::string>{
        "the peer sent " + std::to_string(4 * sent) + " bytes where " + std::to_string(4 * expected) + " were expected",
        "which is " + std::to_string(expected) + " elements of 4 bytes", "mismatch.test.cpp"};
  };
  for (const int ranks : {2, 3, 5}) {
    const auto differ = [&](const char* name, std::size_t sent, auto... how) {
      check(name, ranks, exchanges(sent, 5, how...), exchanges(5, 5, how...), said(sent, 5));
    };
    differ("more by messages", 7, hocket::pairwise);
    differ("less by messages", 0, hocket::pairwise);
    differ("many more", 70'000, hocket::pairwise);
    differ("more over peers' memory", 7, hocket::direct);
    differ("less over peers' memory", 0, hocket::direct);
    differ("by the selected algorithm", 700);
    check("algorithms", ranks, exchanges(5, 5, hocket::direct), exchanges(5, 5, hocket::pairwise),
          {"all_to_all_v", "by direct", "by pairwise"});
  }
}

TEST_CASE("a late rank causes no mismatch") {
  on_ranks(3, [](thread_rank& me) {
    for (int i = 0; i < 5; ++i) {
      if (i % 3 == me.rank()) std::this_thread::sleep_for(30ms);
      std::vector<float> data(300, 1.0F), few(2, 1.0F), all(6);
      hocket::all_reduce(me.comm(), hocket::in_place(data));
      hocket::all_reduce(me.comm(), hocket::in_place(few));
      hocket::all_gather(me.comm(), few, all);
      me.check(data[0] == 3.0F && all[5] == 3.0F, "wrong sum");
    }
  });
}
