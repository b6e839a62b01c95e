// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The surviving ranks can continue, whichever ranks have failed, and whenever.
#include "support/thread_ranks.hpp"

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/barrier.hpp>
#include <hocket/group/adapted.hpp>
#include <hocket/group/local.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/transport/adaptor/forwarding.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <numeric>
#include <source_location>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;

namespace {

/// Names of the members of `comm`, by rank; each rank passes its own name.
template <class Communicator>
std::vector<int> names(const Communicator& comm, int own) {
  std::vector<int> all(static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, std::span(&own, 1), all);
  return all;
}

/// True if `comm` gives right sums of small and of large vectors.
template <class Communicator>
bool sums_up(const Communicator& comm) {
  for (const std::size_t size : {1U, 1000U, 50'000U}) {
    std::vector<double> data(size, comm.rank() + 1.0);
    hocket::all_reduce(comm, hocket::in_place(data));
    const double expected = comm.size() * (comm.size() + 1) / 2.0;
    if (!std::all_of(data.begin(), data.end(), [&](double each) { return each == expected; })) return false;
  }
  return true;
}

/// Exception by which a rank leaves early.
struct rank_left : std::exception {};

/// Delays a rank before one of the control messages that it sends, as if its process was stopped there.
struct halt {
  std::atomic<int> messages_before{-1};  ///< less than 0: no delay
  std::atomic<bool> over{false};

  void pass() {
    if (messages_before.load() < 0 || messages_before.fetch_sub(1) > 0) return;
    const auto last = std::chrono::steady_clock::now() + 20s;
    while (!over.load() && std::chrono::steady_clock::now() < last) std::this_thread::sleep_for(1ms);
  }
};

template <class Endpoints>
class halting_endpoints : public hocket::adaptor::forwarding_endpoints<Endpoints> {
 public:
  halting_endpoints(std::unique_ptr<Endpoints> inner, const hocket::transport::open_parameters&,
                    std::shared_ptr<halt> when)
      : hocket::adaptor::forwarding_endpoints<Endpoints>(std::move(inner)), when_(std::move(when)) {}

  void post(int peer, std::span<const std::byte> words) {
    when_->pass();
    hocket::adaptor::forwarding_endpoints<Endpoints>::post(peer, words);
  }

 private:
  const std::shared_ptr<halt> when_;
};
using halting_domain = hocket::adaptor::adapted_domain<hocket::local::domain,
                                                       halting_endpoints<hocket::local::domain::endpoints_type>, halt>;

}  // namespace

TEST_CASE("shrink works on a communicator that has not failed, and ends it") {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    on_ranks(ranks, [](thread_rank& me) {
      auto next = hocket::shrink(me.comm());
      me.check(next.size() == me.size() && next.rank() == me.rank(), "another set of ranks");
      me.check(sums_up(next), "wrong sums");
      me.expect(hocket::errc::revoked, [&] { hocket::barrier(me.comm()); });
      me.expect(hocket::errc::revoked, [&] { static_cast<void>(hocket::shrink(me.comm())); });
      auto after = hocket::shrink(next);
      me.check(sums_up(after), "wrong sums after the second time");
    });
  }
}

TEST_CASE("after a failed call all ranks know the failure and can shrink together") {
  for (const int ranks : {2, 3, 5}) {
    std::atomic<int> failed{0};
    on_ranks(ranks, [&](thread_rank& me) {
      std::vector<float> data(1000);
      if (me.rank() == 1) {
        while (failed < ranks - 1) std::this_thread::sleep_for(1ms);  // threads of a busy machine may begin late
        me.expect(hocket::errc::timeout, [&] { hocket::all_reduce(me.comm(), hocket::in_place(data)); });
      } else {
        const auto found = me.expect(hocket::errc::timeout, [&] {
          hocket::all_reduce(me.comm(), hocket::in_place(data), std::plus<>{}, hocket::with(hocket::timeout(20ms)));
        });
        ++failed;
        me.check(found && found->context().peer == 1,
                 [&] { return std::string("names another rank: ") + (found ? found->what() : "none"); });
      }
      auto next = hocket::shrink(me.comm());
      me.check(next.size() == me.size() && sums_up(next), "wrong sums");
    });
  }
}

TEST_CASE("ranks that have left are left out, and the others keep their order") {
  for (const int ranks : {2, 3, 5, 8}) {
    for (const int leaver : {0, ranks - 1}) {
      INFO(ranks << " ranks, rank " << leaver << " leaves");
      const auto place = std::make_shared<hocket::local::world>(ranks);
      std::mutex mutex;
      std::vector<std::string> wrong;
      std::vector<std::thread> threads;
      for (int rank = 0; rank < ranks; ++rank) {
        threads.emplace_back([&, rank] {
          try {
            auto comm = hocket::local::connect(place, rank, 30s);
            if (rank == leaver) {
              hocket::barrier(comm);
              throw rank_left();
            }
            std::vector<float> data(1000);
            bool lost = false;
            try {
              hocket::barrier(comm);
              for (;;) hocket::all_reduce(comm, hocket::in_place(data));
            } catch (const hocket::error& cause) {
              lost = cause.code() == hocket::errc::peer_lost && cause.context().peer == leaver;
              if (!lost) throw;
            }
            auto next = hocket::shrink(comm);
            std::vector<int> expected;
            for (int each = 0; each < ranks; ++each) {
              if (each != leaver) expected.push_back(each);
            }
            if (names(next, rank) != expected) throw std::runtime_error("wrong survivors");
            if (!sums_up(next)) throw std::runtime_error("wrong sums");
          } catch (const rank_left&) {
            place->abandon(rank);
          } catch (const std::exception& problem) {
            place->abandon(rank);
            const std::lock_guard lock(mutex);
            wrong.push_back("rank " + std::to_string(rank) + ": " + problem.what());
          }
        });
      }
      for (std::thread& each : threads) each.join();
      CHECK(wrong == std::vector<std::string>{});
    }
  }
}

TEST_CASE("the timeout of a rank that waits for a rank in shrink gives the call site of shrink") {
  on_ranks(2, [](thread_rank& me) {
    if (me.rank() == 1) {
      me.expect(hocket::errc::timeout,
                [&] { static_cast<void>(hocket::shrink(me.comm(), hocket::with(hocket::timeout(400ms)))); });
      return;
    }
    const auto found =
        me.expect(hocket::errc::timeout, [&] { hocket::barrier(me.comm(), hocket::with(hocket::timeout(100ms))); });
    const std::string message = found ? found->what() : "";
    me.check(message.find("rank 1 is in shrink, called at ") != std::string::npos, [&] { return message; });
    me.check(message.find("shrink.test.cpp") != std::string::npos, [&] { return message; });
  });
}

TEST_CASE("a live rank that does not call shrink is named at the deadline") {
  on_ranks(3, [](thread_rank& me) {
    if (me.rank() == 1) {
      std::this_thread::sleep_for(300ms);
      return;
    }
    const auto found = me.expect(hocket::errc::timeout, [&] {
      static_cast<void>(hocket::shrink(me.comm(), hocket::with(hocket::timeout(100ms))));
    });
    me.check(found && found->context().peer == 1, "names another rank");
  });
}

TEST_CASE("ranks whose shrink has timed out can shrink again, together with a rank that is late") {
  for (const int ranks : {2, 3, 5}) {
    for (const auto late : {200ms, 400ms}) {  // within the second call of the others, and between two of them
      on_ranks(ranks, [late](thread_rank& me) {
        if (me.rank() == me.size() / 2) {
          std::this_thread::sleep_for(late);
        } else {
          for (int i = 0; i < 2; ++i) {
            if (late < 300ms && i == 1) continue;
            me.expect(hocket::errc::timeout,
                      [&] { static_cast<void>(hocket::shrink(me.comm(), hocket::with(hocket::timeout(100ms)))); });
          }
        }
        auto next = hocket::shrink(me.comm());
        me.check(next.size() == me.size() && sums_up(next), "wrong sums");
      });
    }
  }
}

TEST_CASE("all others name a rank that never calls shrink, even if they call again with different timeouts") {
  on_ranks(5, [](thread_rank& me) {
    constexpr int absent = 3, calls = 12;
    static std::atomic<int> over;
    if (me.rank() == 0) over = 0;
    hocket::barrier(me.comm());
    if (me.rank() == absent) {  // stays until the others have stopped waiting
      while (over < 4) std::this_thread::sleep_for(1ms);
      return;
    }
    for (int i = 0; i < calls; ++i) {
      const auto found = me.expect(hocket::errc::timeout, [&] {
        static_cast<void>(hocket::shrink(me.comm(), hocket::with(hocket::timeout(20ms + me.rank() * 3ms))));
      });
      me.check(found && found->context().peer == absent,
               [&] { return "call " + std::to_string(i) + ": " + (found ? found->what() : ""); });
    }
    ++over;
  });
}

TEST_CASE("the others agree if a rank is delayed anywhere in shrink") {
  constexpr int most_messages = 20;  // more than a rank sends
  for (const int ranks : {3, 4}) {
    for (const int late : {ranks - 3, ranks - 1}) {
      int ends_with_all = 0;
      for (int messages = 0; messages < most_messages; ++messages) {
        std::vector<std::atomic<int>> sizes(static_cast<std::size_t>(ranks));
        std::atomic<int> others_over{0};
        on_ranks(ranks, [&](thread_rank& me) {
          const auto when = std::make_shared<halt>();
          auto comm = hocket::detail::adapt<halting_domain>(me.comm(), when, std::source_location::current());
          hocket::barrier(comm);
          if (me.rank() == late) when->messages_before = messages;
          const std::jthread watch([&] {
            while (me.rank() == late && others_over.load() < ranks - 1) std::this_thread::sleep_for(1ms);
            when->over = true;
          });
          try {
            const auto made = hocket::shrink(comm, hocket::with(hocket::timeout(200ms)));
            sizes[static_cast<std::size_t>(me.rank())] = made.size();
            if (me.rank() != late) ++others_over;
            while (me.rank() != late && others_over.load() < ranks - 1) std::this_thread::sleep_for(1ms);
          } catch (const hocket::error& cause) {
            me.check(cause.code() == hocket::errc::timeout || me.rank() == late, [&] { return cause.what(); });
            if (me.rank() != late) ++others_over;
          }
        });
        const auto of = [&](int rank) { return sizes[static_cast<std::size_t>(rank)].load(); };
        const int one_of_them = of(late == 0 ? 1 : 0);
        INFO(ranks << " ranks, " << late << " delayed before message " << messages);
        for (int rank = 0; rank < ranks; ++rank) CHECK((rank == late || of(rank) == one_of_them));
        ends_with_all += one_of_them == ranks;
      }
      CHECK((ends_with_all > 0 && ends_with_all < most_messages));  // it was delayed in the middle, too
    }
  }
}

TEST_CASE("if shrink is aborted while a rank is delayed, ranks continue in one world or learn of their exclusion") {
  constexpr int most_messages = 14;  // more than a rank sends before its last vote
  struct end {
    std::vector<int> world;
    bool left_behind = false;
  };
  int left_behind = 0;
  for (const auto& [ranks, late] : {std::pair(2, 0), std::pair(3, 0), std::pair(4, 2)}) {
    for (int messages = 0; messages < most_messages; ++messages) {
      const int aborted = ranks - 1;
      std::atomic<int> others_over{0};
      std::vector<end> ends(static_cast<std::size_t>(ranks));
      on_ranks(ranks, [&, late = late](thread_rank& me) {
        end& own = ends[static_cast<std::size_t>(me.rank())];
        const auto when = std::make_shared<halt>();
        auto comm = hocket::detail::adapt<halting_domain>(me.comm(), when, std::source_location::current());
        hocket::barrier(comm);
        if (me.rank() == late) when->messages_before = messages;
        std::thread other([&] {
          if (me.rank() == aborted) {
            std::this_thread::sleep_for(4ms);
            comm.abort();
          }
          while (me.rank() == late && others_over.load() < me.size() - 1) std::this_thread::sleep_for(1ms);
          when->over = true;
        });
        for (int tries = 0; tries < 2 * me.size() && own.world.empty() && !own.left_behind; ++tries) {
          try {
            auto next = hocket::shrink(comm, hocket::with(hocket::timeout(2s)));
            if (other.joinable()) ++others_over, other.join();
            comm = std::move(next);
            own.world = names(comm, me.rank());
          } catch (const hocket::error& cause) {
            if (other.joinable()) ++others_over, other.join();
            own.left_behind = std::string(cause.what()).find("continues with the communicator") != std::string::npos;
            if (own.left_behind) me.check(cause.code() == hocket::errc::peer_lost, [&] { return cause.what(); });
          }
        }
        me.check(own.left_behind == own.world.empty(), "neither has a world, nor was left behind");
      });
      INFO(ranks << " ranks, " << late << " delayed before message " << messages);
      std::vector<std::vector<int>> worlds;
      for (const end& each : ends) {
        if (!each.left_behind && std::ranges::find(worlds, each.world) == worlds.end()) worlds.push_back(each.world);
        left_behind += each.left_behind;
      }
      CHECK(worlds.size() == 1);
    }
  }
  CHECK(left_behind > 0);  // some were aborted just when the others had decided
}

TEST_CASE("texts that survivors exchange can be longer than one message") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [](thread_rank& me) {
      auto& state = hocket::detail::communicator_access::state(me.comm());
      const hocket::detail::call_site call{.operation = "shrink", .timeout = 30s};
      hocket::detail::survivor_consensus consensus(state, hocket::deadline::after(30s), call);
      const auto words_of = [](int rank, std::size_t size) {
        return std::string(size * static_cast<std::size_t>(rank + 1), static_cast<char>('a' + rank));
      };
      std::uint32_t number = 1;
      for (const std::size_t size : {0U, 1U, 955U, 956U, 957U, 5000U}) {
        const auto all = consensus.gather_long(number, words_of(me.rank(), size));
        number += consensus.most_votes_per_gather;
        for (int rank = 0; rank < me.size(); ++rank) {
          me.check(all[static_cast<std::size_t>(rank)] == words_of(rank, size), "another text than was sent");
        }
      }
    });
  }
}
