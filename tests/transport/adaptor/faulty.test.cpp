// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Thousands of random schedules of faults: each call returns a correct result or a specific error.
#include "support/thread_ranks.hpp"

#include <hocket/group/adapted.hpp>
#include <hocket/hocket.hpp>
#include <hocket/sim.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace hocket_test;
using namespace std::chrono_literals;
using hocket::errc;
using hocket::adaptor::fault_kind;
using hocket::adaptor::faults;

namespace {

std::uint64_t element(int rank, std::size_t i) {
  return (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15U + i * i;
}

std::vector<std::uint64_t> vector_of(int rank, std::size_t size) {
  std::vector<std::uint64_t> result(size);
  for (std::size_t i = 0; i < size; ++i) result[i] = element(rank, i);
  return result;
}

std::vector<std::uint64_t> sum_of(int ranks, std::size_t size) {
  std::vector<std::uint64_t> result(size);
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < size; ++i) result[i] += element(rank, i);
  }
  return result;
}

std::vector<std::uint64_t> all_of(int ranks, std::size_t size) {
  std::vector<std::uint64_t> result;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::size_t i = 0; i < size; ++i) result.push_back(element(rank, i));
  }
  return result;
}

/// A call in flight, and its expected result.
struct promise {
  std::vector<std::uint64_t> in, out, expected;
  std::optional<hocket::request> request;

  bool kept() const { return out == expected; }
};

/// Starts call `number` of the sequence of calls that `seed` determines.
template <class Communicator, class Options>
std::unique_ptr<promise> start(const Communicator& comm, std::uint64_t seed, int number, const Options& options) {
  std::mt19937_64 random(seed * 64 + static_cast<std::uint64_t>(number));
  constexpr std::array<std::size_t, 5> sizes{1, 3, 100, 1001, 3000};
  const std::size_t size = sizes[random() % sizes.size()];
  auto made = std::make_unique<promise>();
  made->in = vector_of(comm.rank(), size);
  made->out.assign(size, 0);
  made->expected = sum_of(comm.size(), size);
  const auto ranks = static_cast<std::size_t>(comm.size()), self = static_cast<std::size_t>(comm.rank());
  /// Returns how many elements one rank sends to another, in calls with counts.
  const auto count = [size](std::size_t from, std::size_t to) { return (size + 7 * from + 3 * to) % 501; };
  const int root = static_cast<int>(random() % ranks);
  switch (random() % 9) {
    case 0: made->request = hocket::all_reduce_async(comm, made->in, made->out, std::plus<>{}, options); break;
    case 1: {
      made->out.assign(size * static_cast<std::size_t>(comm.size()), 0);
      made->expected = all_of(comm.size(), size);
      made->request = hocket::all_gather_async(comm, made->in, made->out, options);
      break;
    }
    case 2: {
      std::vector<std::size_t> counts;
      made->expected.clear();
      for (std::size_t r = 0; r < ranks; ++r) {
        counts.push_back(count(r, 0));
        const auto block = vector_of(static_cast<int>(r), counts.back());
        made->expected.insert(made->expected.end(), block.begin(), block.end());
      }
      made->in = vector_of(comm.rank(), counts[self]);
      made->out.assign(made->expected.size(), 0);
      made->request = hocket::all_gather_v_async(comm, made->in, made->out, hocket::counts{counts}, options);
      break;
    }
    case 3: {
      std::vector<std::size_t> to, from;
      made->in.clear();
      made->expected.clear();
      for (std::size_t r = 0; r < ranks; ++r) {
        to.push_back(count(self, r));
        from.push_back(count(r, self));
        made->in.insert(made->in.end(), to.back(), self * ranks + r);
        made->expected.insert(made->expected.end(), from.back(), r * ranks + self);
      }
      made->out.assign(made->expected.size(), 0);
      made->request = hocket::all_to_all_v_async(comm, made->in, made->out, hocket::send_counts{to},
                                                 hocket::receive_counts{from}, options);
      break;
    }
    case 4: {
      made->expected = vector_of(root, size);
      if (comm.rank() == root) made->out = made->in;
      made->request = hocket::broadcast_async(comm, made->out, hocket::root{root}, options);
      break;
    }
    case 5: {
      if (comm.rank() != root) made->expected = made->out;
      made->request = hocket::reduce_async(comm, made->in, made->out, std::plus<>{}, hocket::root{root}, options);
      break;
    }
    case 6: {
      made->out.assign(size * ranks, 0);
      made->expected = comm.rank() == root ? all_of(comm.size(), size) : made->out;
      made->request = hocket::gather_async(comm, made->in, made->out, hocket::root{root}, options);
      break;
    }
    case 7: {
      made->in = vector_of(root, size * ranks);
      const auto begin = made->in.begin() + static_cast<std::ptrdiff_t>(size * self);
      made->expected.assign(begin, begin + static_cast<std::ptrdiff_t>(size));
      made->request = hocket::scatter_async(comm, made->in, made->out, hocket::root{root}, options);
      break;
    }
    default: made->out = made->expected; made->request = hocket::barrier_async(comm, options);
  }
  return made;
}

/// Counts of correct results and of each error.
struct tally {
  std::atomic<int> right{0};
  std::array<std::atomic<int>, 16> failed{};

  void count(const hocket::error& cause) { ++failed[static_cast<std::size_t>(cause.code().value()) % failed.size()]; }
  int count_of(errc what) const { return failed[static_cast<std::size_t>(what)]; }

  void print(const char* name) const {
    std::printf("%s: %d correct calls", name, right.load());
    for (std::size_t i = 0; i < failed.size(); ++i) {
      if (failed[i] > 0)
        std::printf(", %d %s", failed[i].load(), hocket::make_error_code(static_cast<errc>(i)).message().c_str());
    }
    std::printf("\n");
  }
};

/// Returns the kinds of faults of a schedule. Changed bytes are detected only if messages have checksums.
std::vector<fault_kind> kinds_of(bool checksummed) {
  using enum fault_kind;
  if (checksummed) return {delay, delay, drop, duplicate, cut, truncate, stop, kill, corrupt, corrupt, corrupt};
  return {delay, delay, drop, duplicate, cut, truncate, stop, kill};
}

/// Returns whether the error is a specific one, and has a reason.
bool has_a_name(const hocket::error& cause) {
  return cause.code().category() == hocket::error_category() && cause.code() != errc::system &&
         cause.code() != errc::invalid_argument && !cause.cause().reason.empty();
}

/// Returns whether the error may name the rank that it names, or none, if `what` are the only causes of failures.
/// Messages that are lost or sent twice stop one of two ranks, of which either may be named. If ranks wait for each other
/// in a circle because a link of the circle is cut, the message contains the whole circle.
bool may_be_named(const hocket::error& cause, const faults& what) {
  using enum fault_kind;
  const int named = cause.context().peer;
  const auto mentions = [&](int rank) {
    return std::string(cause.what()).find("rank " + std::to_string(rank)) != std::string::npos;
  };
  return std::any_of(what.begin(), what.end(), [&](const auto& each) {
    const bool is_its_rank = named == each.rank;
    if (each.what == kill && cause.context().rank == each.rank) return true;  // the error of the killed rank itself
    if (cause.code() == errc::corrupted) return each.what == corrupt && is_its_rank;
    if (cause.code() == errc::aborted) return each.what == kill && is_its_rank;
    if (each.what == drop || each.what == duplicate) return true;
    if (cause.code() == errc::mismatch) return each.what == truncate && is_its_rank;
    if (each.what == cut) return is_its_rank || named == each.peer || (mentions(each.rank) && mentions(each.peer));
    return is_its_rank;
  });
}

/// The first seed: 0, or the value of HOCKET_SOAK_SEED.
std::uint64_t first_seed() {
  const char* const value = std::getenv("HOCKET_SOAK_SEED");
  return value == nullptr ? 0 : std::strtoull(value, nullptr, 10);
}

constexpr int calls = 4;

/// Sanitizers make the tests ten times slower, and find the same with a tenth of the schedules.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr std::uint64_t simulated_schedules = 1000;
constexpr std::uint64_t schedules_per_size = 34;
#else
constexpr std::uint64_t simulated_schedules = 10'000;
constexpr std::uint64_t schedules_per_size = 334;
#endif

// ── Threads ────────────────────────────────────────────────────────────────────────────────────────────────────────

/// Returns the failure that ended the calls; none if all succeeded.
template <class Communicator, class Options>
std::optional<hocket::error> stream(thread_rank& me, const Communicator& comm, std::uint64_t seed,
                                    const Options& options, tally& found) {
  for (int number = 0; number < calls; ++number) {
    try {
      const auto call = start(comm, seed, number, options);
      call->request->wait();
      me.check(call->kept(), "a wrong result was not detected");
      ++found.right;
    } catch (const hocket::error& cause) {
      me.check(has_a_name(cause), [&] { return std::string("not a specific error: ") + cause.what(); });
      found.count(cause);
      return cause;
    }
  }
  return std::nullopt;
}

/// Makes calls between threads with the faults of a seed. Returns the failure that ended them.
std::optional<hocket::error> calls_with_faults(thread_rank& me, std::uint64_t seed, std::chrono::nanoseconds timeout,
                                               tally& plain, tally& checked) {
  const bool checksummed = seed % 2 == 0;
  const faults what = hocket::adaptor::draw_faults(seed, me.size(), 30, kinds_of(checksummed), 2ms);
  me.at([&] { return "seed " + std::to_string(seed) + ": " + to_string(what); });
  auto comm = hocket::with_faults(me.comm(), what);
  comm.set_timeout(timeout);
  if (!checksummed) return stream(me, comm, seed, hocket::with(), plain);
  return stream(me, comm, seed, hocket::with(hocket::require(hocket::checksummed)), checked);
}

/// Seeds with which an error has named a rank that had no fault.
class doubtful_seeds {
 public:
  void add(std::uint64_t seed) {
    const std::lock_guard lock(mutex_);
    seeds_.insert(seed);
  }
  std::set<std::uint64_t> take() { return std::exchange(seeds_, {}); }

 private:
  std::mutex mutex_;
  std::set<std::uint64_t> seeds_;
};

bool names_a_faulty_rank(const std::optional<hocket::error>& cause, std::uint64_t seed, int ranks) {
  return !cause || may_be_named(*cause, hocket::adaptor::draw_faults(seed, ranks, 30, kinds_of(seed % 2 == 0), 2ms));
}

}  // namespace

TEST_CASE("1000 schedules of faults between threads give correct results or specific errors") {
  tally plain, checked;
  const std::uint64_t first = first_seed();
  std::printf("seeds from HOCKET_SOAK_SEED=%llu\n", static_cast<unsigned long long>(first));
  for (const int ranks : {2, 3, 5}) {
    doubtful_seeds doubtful;
    on_ranks(ranks, [&](thread_rank& me) {
      for (std::uint64_t seed = first; seed < first + schedules_per_size; ++seed) {
        const auto cause = calls_with_faults(me, seed, 5ms, plain, checked);
        if (!names_a_faulty_rank(cause, seed, ranks)) doubtful.add(seed);
      }
    });
    // A rank that has no core for 5 ms is late without a fault, and is rightly named. With more time it is not. This
    // is longer than a rank waits for a peer's call after a message of wrong length.
    const std::set<std::uint64_t> again = doubtful.take();
    on_ranks(ranks, [&](thread_rank& me) {
      for (const std::uint64_t seed : again) {
        const auto cause = calls_with_faults(me, seed, 700ms, plain, checked);
        me.check(names_a_faulty_rank(cause, seed, ranks),
                 [&] { return std::string("wrong culprit: ") + cause->what(); });
      }
    });
  }
  plain.print("peers' memory and messages");
  checked.print("messages with checksums");
  CHECK(plain.right + checked.right > static_cast<int>(9 * schedules_per_size));
  for (const errc each : {errc::timeout, errc::aborted}) CHECK(plain.count_of(each) > 0);
  for (const errc each : {errc::timeout, errc::aborted, errc::corrupted}) CHECK(checked.count_of(each) > 0);
}

TEST_CASE("without faults, the adaptor does not change results") {
  for (const int ranks : {1, 2, 3, 5}) {
    on_ranks(ranks, [](thread_rank& me) {
      auto comm = hocket::with_faults(me.comm(), {});
      tally found;
      for (std::uint64_t seed = 0; seed < 20; ++seed) stream(me, comm, seed, hocket::with(), found);
      me.check(found.right == 20 * calls, "a call failed");
      auto part = hocket::split(comm, hocket::color{me.rank() % 2});
      stream(me, part, 1, hocket::with(hocket::require(hocket::checksummed)), found);
    });
  }
}

TEST_CASE("each kind of fault has its specified effect") {
  using hocket::adaptor::fault;
  /// Checks the outcome of several calls on `rank` of two ranks. The timeout is short only if one is expected.
  const auto expect = [](const std::string& expected, int rank, const fault& what, auto options) {
    std::string found = "right";
    on_ranks(2, [&](thread_rank& me) {
      auto comm = hocket::with_faults(me.comm(), {what});
      comm.set_timeout(expected == "timed out" ? 50ms : 20s);
      std::vector<std::uint64_t> data;
      try {
        for (int i = 0; i < 3; ++i) {
          data = vector_of(me.rank(), 1000);
          hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, options);
        }
        me.check(data == sum_of(2, 1000), "a wrong sum");
      } catch (const hocket::error& cause) {
        if (me.rank() == rank) found = cause.code().message();
      }
    });
    INFO(to_string(what));
    CHECK(found == expected);
  };
  const auto messages = hocket::with(hocket::recursive_doubling, hocket::require(hocket::checksummed));
  const auto memory = hocket::with(hocket::two_shot);
  const auto lasts = [&](const fault& what, auto options) {
    const auto begin = std::chrono::steady_clock::now();
    expect("right", 1, what, options);
    return std::chrono::steady_clock::now() - begin;
  };
  CHECK(lasts({.what = fault_kind::delay, .rank = 0, .step = 1, .time = 300ms}, messages) > 300ms);
  CHECK(lasts({.what = fault_kind::delay, .rank = 0, .step = 1, .time = 300ms}, memory) > 300ms);
  for (const int rank : {0, 1}) {
    // Between threads, a send is complete when the message is received, and no rank receives the duplicate.
    expect("timed out", rank, {fault_kind::duplicate, 0, 1}, messages);
  }
  expect("timed out", 1, {fault_kind::drop, 0, 0}, messages);
  expect("timed out", 1, {fault_kind::drop, 0, 0}, memory);
  expect("calls do not match across ranks", 1, {fault_kind::truncate, 0, 0}, messages);
  expect("data corrupted", 1, {fault_kind::corrupt, 0, 0}, messages);
  expect("data corrupted", 0, {fault_kind::corrupt, 0, 0}, messages);
  for (const int rank : {0, 1}) {
    expect("timed out", rank, {.what = fault_kind::cut, .rank = 0, .step = 1, .peer = 1}, messages);
    expect("timed out", rank, {.what = fault_kind::cut, .rank = 0, .step = 1, .peer = 1}, memory);
  }
  expect("right", 0, {.what = fault_kind::stop, .rank = 0, .step = 1, .time = 10ms}, messages);
  expect("timed out", 1, {.what = fault_kind::stop, .rank = 0, .step = 1, .time = 500ms}, memory);
  expect("aborted", 0, {fault_kind::kill, 0, 1}, messages);
  expect("aborted", 1, {fault_kind::kill, 0, 1}, memory);
}

// ── A simulated world ──────────────────────────────────────────────────────────────────────────────────────────────

namespace {

using faulty_domain = hocket::adaptor::faulty<hocket::sim::domain>;

/// Returns the first problem that no error reports; empty if none.
std::string simulate(std::uint64_t seed, tally& found) {
  const int ranks = 2 + static_cast<int>(seed % 7);
  const faults what = hocket::adaptor::draw_faults(seed, ranks, 20, kinds_of(true), 10us);
  hocket::sim::world world(ranks);
  std::vector<int> everybody(static_cast<std::size_t>(ranks));
  std::iota(everybody.begin(), everybody.end(), 0);
  auto comms = world.group_on<faulty_domain>(everybody, [&](const auto& domain, int rank) {
    return std::make_shared<faulty_domain>(domain, std::make_shared<hocket::adaptor::fault_injector>(what, rank));
  });
  std::vector<std::unique_ptr<promise>> promises;
  for (int number = 0; number < calls; ++number) {
    for (const auto& comm : comms) {
      promises.push_back(start(comm, seed, number, hocket::with(hocket::require(hocket::checksummed))));
    }
  }
  std::error_code ignored;
  world.run(ignored);
  for (const auto& each : promises) {
    try {
      each->request->wait();
      if (!each->kept()) return "seed " + std::to_string(seed) + ": an undetected wrong result: " + to_string(what);
      ++found.right;
    } catch (const hocket::error& cause) {
      const std::string who = "seed " + std::to_string(seed) + ": ";
      if (!has_a_name(cause)) return who + "not a specific error: " + cause.what();
      // A simulated world in which nothing moves reports who waits for whom, and no culprit; a call after a failure
      // quotes that failure.
      const bool has_culprit = cause.code() != errc::timeout && cause.code() != errc::revoked;
      if (has_culprit && !may_be_named(cause, what)) {
        return who + "wrong culprit: " + cause.what() + '\n' + to_string(what) + '\n';
      }
      found.count(cause);
    }
  }
  return {};
}

}  // namespace

TEST_CASE("no faults are drawn without ranks, steps or kinds") {
  const std::vector<hocket::adaptor::fault_kind> kinds{hocket::adaptor::fault_kind::delay};
  CHECK(hocket::adaptor::draw_faults(1, 0, 10, kinds).empty());
  CHECK(hocket::adaptor::draw_faults(1, 3, 0, kinds).empty());
  CHECK(hocket::adaptor::draw_faults(1, 3, 10, {}).empty());
  for (const auto& each : hocket::adaptor::draw_faults(1, 1, 1, kinds, 0ns)) CHECK(each.time == 1ns);
}

TEST_CASE("10 000 schedules of faults between simulated ranks give correct results or specific errors") {
  tally found;
  std::string wrong;
  const std::uint64_t first = first_seed();
  std::printf("seeds from HOCKET_SOAK_SEED=%llu\n", static_cast<unsigned long long>(first));
  for (std::uint64_t seed = first; seed < first + simulated_schedules; ++seed) wrong += simulate(seed, found);
  CHECK(wrong == "");
  found.print("simulated");
  CHECK(found.right > static_cast<int>(simulated_schedules));
  for (const errc each : {errc::timeout, errc::mismatch, errc::corrupted}) CHECK(found.count_of(each) > 0);
}
