// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Whatever goes wrong on one rank, whenever: all ranks end in time, with an error that says whose fault it was; results
// that come without an error are right; and nothing is freed that a stream may still touch.
#include "engine/stream/device_ranks.hpp"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/engine/stream/operation.hpp>
#include <hocket/plan/collective/one_shot.hpp>
#include <hocket/plan/collective/recursive_doubling.hpp>
#include <hocket/plan/collective/two_shot.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace hocket_test;
namespace plan = hocket::plan;
using hocket::errc;

namespace {

constexpr std::size_t size = 100;

/// Streams that run dry after a failure do so in no order: what they read and write means nothing then.
#if defined(__SANITIZE_THREAD__)
constexpr bool races_are_told = true;
#else
constexpr bool races_are_told = false;
#endif

/// Where a rank was when it first failed.
enum class stage { none, joining, binding, enqueueing, finishing, closing };

struct verdict {
  stage at = stage::none;
  hocket::failure failure;
  bool right = false;
};

/// Everything that a rank does: three operations, one of them with scratch, and one with scratch that peers read.
verdict life_of(device_rank& me, std::chrono::milliseconds patience = std::chrono::seconds(10),
                const std::function<void()>& before_enqueueing = {}) {
  verdict end;
  const auto went = [&](stage at, hocket::failure found) {
    if (found && !end.failure) end = {at, std::move(found), false};
    return !end.failure;
  };
  const std::plus<> op;
  if (went(stage::joining, me.join(std::chrono::seconds(1)))) {
    float* const in = me.upload(samples<float>(me.rank(), size));
    float* const out = me.allocate<float>(size);
    float* const doubled = me.allocate<float>(size);
    hocket::detail::stream_binding what{.plan = plan::two_shot{},
                                        .block_elements = size,
                                        .leaf = &queue_leaf_of<std::plus<>, float>,
                                        .operation = &op,
                                        .in = reinterpret_cast<ipc::address>(in),
                                        .out = reinterpret_cast<ipc::address>(out)};
    std::unique_ptr<device_operation> first, second, third;
    bool good = went(stage::binding, me.bind(what, first));
    what.plan = plan::one_shot{};
    what.in = what.out;
    good = good && went(stage::binding, me.bind(what, second));
    what.plan = plan::recursive_doubling{};
    what.in = reinterpret_cast<ipc::address>(in);
    what.out = reinterpret_cast<ipc::address>(doubled);
    good = good && went(stage::binding, me.bind(what, third));
    const ipc::stream_handle stream = good ? me.stream() : nullptr;
    if (good && before_enqueueing) before_enqueueing();
    good = good && went(stage::enqueueing, first->enqueue(stream));
    good = good && went(stage::enqueueing, second->enqueue(stream));
    good = good && went(stage::enqueueing, third->enqueue(stream));
    good = good && went(stage::finishing, third->finish(soon(patience)));
    if (good) {
      end.right = true;
      for (std::size_t i = 0; i < size; ++i) {
        float sum = sample<float>(0, i);
        for (int rank = 1; rank < me.size(); ++rank) sum += sample<float>(rank, i);
        float twice = sum;
        for (int rank = 1; rank < me.size(); ++rank) twice += sum;
        end.right = end.right && out[i] == twice && std::abs(doubled[i] - sum) <= 1e-5F * std::abs(sum);
      }
    }
    first.reset();
    went(stage::closing, me.group().close(soon(patience)));
    second.reset();
    third.reset();
    me.leave();
  }
  return end;
}

struct outcome {
  std::vector<verdict> ranks;
  std::string failed_call;
  bool failed = false;
  bool leaked = false;
  bool freed_too_soon = false;  ///< while streams used it, or a peer had it open
};

outcome life_with_fault(int ranks, kind_of_ranks kind, int call, status code) {
  device_ranks all(ranks, kind);
  if (ranks == 3) all.without_batches();
  outcome result;
  result.ranks.resize(static_cast<std::size_t>(ranks));
  all[0].driver().inject(call, code);
  all.run([&](device_rank& me) { result.ranks[static_cast<std::size_t>(me.rank())] = life_of(me); });
  result.failed = all[0].driver().has_failed();
  result.failed_call = all[0].driver().failed_call();
  all[0].driver().forget_faults();
  for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)].free_all();
  result.freed_too_soon = all.machine.freed_while_used != 0 || all.machine.freed_while_open != 0;
  result.leaked = all.machine.allocated() != 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& driver = all[static_cast<std::size_t>(rank)].driver();
    result.leaked = result.leaked || driver.opens != driver.closes || driver.streams() != 0 || driver.events() != 0 ||
                    driver.pinned() != 0;
  }
  return result;
}

/// `count` lives at once, as each of them mostly waits.
template <class Live>
std::vector<outcome> lives(std::size_t count, Live live) {
  std::vector<std::future<outcome>> begun;
  for (std::size_t i = 0; i < count; ++i) begun.push_back(std::async(std::launch::async, live, i));
  std::vector<outcome> ended;
  for (auto& each : begun) ended.push_back(each.get());
  return ended;
}
constexpr std::size_t at_once = 8;

/// All that must hold, whatever has failed on rank 0.
void check(const outcome& seen, status code) {
  INFO(seen.failed_call << " returns " << static_cast<int>(code));
  CHECK_FALSE(seen.freed_too_soon);
  const verdict& faulty = seen.ranks[0];
  for (std::size_t rank = 0; rank < seen.ranks.size(); ++rank) {
    const verdict& each = seen.ranks[rank];
    INFO("rank " << rank << ": " << each.failure.message());
    CHECK((each.failure || each.right));
    if (!each.failure) continue;
    CHECK_FALSE(each.failure.reason.empty());
    CHECK(each.failure.code != errc::timeout);
    // Collective steps fail alike; from then on others hear of it.
    if (rank == 0 || each.at == stage::joining || each.at == stage::binding) continue;
    CHECK(each.failure.context.peer == 0);
    CHECK(each.failure.code == errc::aborted);
  }
  for (const verdict& each : seen.ranks) {
    if (faulty.at != stage::joining && faulty.at != stage::binding && faulty.at != stage::enqueueing) continue;
    CHECK(static_cast<bool>(each.failure));
    if (faulty.at == stage::joining || faulty.at == stage::binding) {
      CHECK(each.at == faulty.at);
      CHECK(each.failure.code == faulty.failure.code);
      CHECK(each.failure.reason == faulty.failure.reason);
    }
  }
}

}  // namespace

TEST_CASE("a life without faults is right, and leaves nothing") {
  for (const kind_of_ranks kind : {kind_of_ranks::threads, kind_of_ranks::processes}) {
    const outcome seen = life_with_fault(3, kind, 1'000'000, status::unknown);
    CHECK_FALSE(seen.failed);
    CHECK_FALSE(seen.leaked);
    CHECK_FALSE(seen.freed_too_soon);
    for (const verdict& each : seen.ranks) {
      INFO(each.failure.message());
      CHECK(each.right);
      CHECK(each.at == stage::none);
    }
  }
}

TEST_CASE("each call of the driver fails once, in a life of two ranks and of three") {
  if (races_are_told) return;
  for (const int ranks : {2, 3}) {
    for (const kind_of_ranks kind : {kind_of_ranks::processes, kind_of_ranks::threads}) {
      const auto code_of = [](int call) { return call % 2 == 0 ? status::out_of_memory : status::illegal_address; };
      int call = 0;
      int leaks = 0;
      std::set<stage> stages;
      for (bool failed = true; failed;) {
        const int first = call;
        const auto live = [&](std::size_t i) {
          const int failing = first + static_cast<int>(i);
          return life_with_fault(ranks, kind, failing, code_of(failing));
        };
        for (const outcome& seen : lives(at_once, live)) {
          failed = failed && seen.failed;
          if (!failed) break;
          check(seen, code_of(call++));
          leaks += seen.leaked ? 1 : 0;
          stages.insert(seen.ranks[0].at);
        }
      }
      CHECK(call > 60);
      CHECK(stages.size() == 6);  // each of them was met
      CHECK(leaks == 0);
    }
  }
}

TEST_CASE("each function of the driver fails by every code there is") {
  if (races_are_told) return;
  // The first call of each function.
  std::vector<int> calls;
  int call_count = 0;
  {
    std::set<std::string> known;
    for (bool failed = true; failed;) {
      const int first = call_count;
      const auto live = [&](std::size_t i) {
        return life_with_fault(2, kind_of_ranks::processes, first + static_cast<int>(i), status::unknown);
      };
      for (const outcome& seen : lives(at_once, live)) {
        failed = failed && seen.failed;
        if (!failed) break;
        if (known.insert(seen.failed_call).second) calls.push_back(call_count);
        ++call_count;
      }
    }
    CHECK(known.size() > 18);
  }
  const std::set<status> all = every_code();
  const std::vector<status> codes(all.begin(), all.end());
  for (const int call : calls) {
    for (std::size_t first = 0; first < codes.size(); first += at_once) {
      const auto live = [&](std::size_t i) {
        return life_with_fault(2, kind_of_ranks::processes, call, codes[first + i]);
      };
      const std::vector<outcome> seen = lives(std::min(at_once, codes.size() - first), live);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        if (seen[i].failed) check(seen[i], codes[first + i]);
      }
    }
  }
}

TEST_CASE("a rank that never comes to an operation is named when the time is over") {
  if (races_are_told) return;
  device_ranks all(3);
  std::vector<verdict> ends(3);
  all.run([&](device_rank& me) {
    const bool stays_away = me.rank() == 1;
    verdict& end = ends[static_cast<std::size_t>(me.rank())];
    end = life_of(me, std::chrono::milliseconds(300), [&] {
      if (stays_away) std::this_thread::sleep_for(std::chrono::milliseconds(800));
    });
  });
  for (const std::size_t rank : {0U, 2U}) {
    INFO(ends[rank].failure.message());
    const bool named = ends[rank].failure.code == errc::timeout && ends[rank].failure.context.peer == 1;
    const bool heard = ends[rank].failure.code == errc::aborted;  // of the other one's timeout
    CHECK((named || heard));
    CHECK(ends[rank].at == stage::finishing);
  }
  CHECK((ends[0].failure.code == errc::timeout || ends[2].failure.code == errc::timeout));
  CHECK(ends[1].failure.code == errc::aborted);
  for (int rank = 0; rank < 3; ++rank) all[static_cast<std::size_t>(rank)].free_all();
  CHECK(all.machine.freed_while_used == 0);
  CHECK(all.machine.freed_while_open == 0);
}

TEST_CASE("a rank whose process has ended is named, and the others free what is theirs") {
  if (races_are_told) return;
  device_ranks all(3);
  std::atomic<bool> dead{false};
  std::vector<hocket::failure> before(3), waits(3), ends(3);
  std::vector<std::unique_ptr<device_operation>> work(3);
  all.run([&](device_rank& me) {
    const auto rank = static_cast<std::size_t>(me.rank());
    const std::plus<> op;
    before[rank] = me.join(std::chrono::seconds(2), [&](int peer) { return peer == 2 && dead.load(); });
    if (before[rank]) return;
    const auto at = reinterpret_cast<ipc::address>(me.upload(samples<float>(me.rank(), size)));
    before[rank] = me.bind({.plan = plan::one_shot{},
                            .block_elements = size,
                            .leaf = &queue_leaf_of<std::plus<>, float>,
                            .operation = &op,
                            .in = at,
                            .out = at},
                           work[rank]);
    if (before[rank]) return;
    if (me.rank() == 2) {
      dead = true;
      return;
    }
    before[rank] = work[rank]->enqueue(me.stream());
    waits[rank] = work[rank]->finish(soon());
    ends[rank] = me.group().close(soon());
    work[rank].reset();
    me.leave();
    me.free_all();
  });
  for (const hocket::failure& each : before) CHECK_FALSE(static_cast<bool>(each));
  for (const std::size_t rank : {0U, 1U}) {
    INFO(waits[rank].message() << "; " << ends[rank].message());
    const bool lost = waits[rank].code == errc::peer_lost && waits[rank].context.peer == 2;
    CHECK((lost || (waits[rank].code == errc::aborted && waits[rank].context.peer == 2)));
    CHECK(ends[rank].code == errc::peer_lost);
    CHECK(ends[rank].context.peer == 2);
  }
  CHECK((waits[0].code == errc::peer_lost || waits[1].code == errc::peer_lost));
  // What was rank 2's goes with its process.
  CHECK(all.machine.freed_while_used == 0);
  all[2].free_all();
  work[2].reset();
  all[2].leave();
}

TEST_CASE("a rank whose driver says nothing but errors any more leaves its memory, and tells the others") {
  if (races_are_told) return;
  for (const int later : {0, 7}) {
    device_ranks all(2);
    std::vector<verdict> ends(2);
    all.run([&](device_rank& me) {
      ends[static_cast<std::size_t>(me.rank())] = life_of(me, std::chrono::milliseconds(1500), [&] {
        if (me.rank() == 0) me.driver().break_at(later, status::illegal_address);
      });
    });
    INFO(later << ": " << ends[0].failure.message() << "; " << ends[1].failure.message());
    CHECK(static_cast<bool>(ends[0].failure));
    CHECK(ends[0].failure.code == errc::system);
    CHECK(ends[1].failure.code == errc::aborted);
    CHECK(ends[1].failure.context.peer == 0);
    CHECK(all.machine.freed_while_used == 0);
    CHECK(all.machine.freed_while_open == 0);
    all[0].driver().forget_faults();
  }
}
