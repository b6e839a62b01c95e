// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loader: order, restarts, times of waiting, errors of its threads, and its end.
#include <hocket/core/error.hpp>
#include <hocket/data/loader.hpp>
#include <hocket/data/mixed_sources.hpp>
#include <hocket/data/mixture.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/share.hpp>

#include "support/catch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using hocket::errc;
using namespace hocket::data;
using clock_type = std::chrono::steady_clock;

/// Samples that are their own numbers, after a call of `before`.
template <class Sample>
struct numbered_source {
  using batch_type = std::vector<Sample>;
  std::function<void(const Sample&)> before = [](const Sample&) {};
  void append(const Sample& sample, batch_type& to) const {
    before(sample);
    to.push_back(sample);
  }
};
using numbers_source = numbered_source<std::uint64_t>;

struct offset_source {
  using batch_type = std::vector<std::uint64_t>;
  void append(std::uint64_t sample, batch_type& to) const { to.push_back(1000 + sample); }
};

/// Runs `ranks` loaders for `steps` steps from `from` on, appends the samples of all ranks to `used`, and returns the
/// cursor.
template <class Order, class Sample>
cursor run_steps(const Order& order, int ranks, std::uint64_t batch, int steps, const cursor& from,
                 std::vector<Sample>& used) {
  const numbered_source<Sample> source;
  std::vector<std::vector<Sample>> of_step(static_cast<std::size_t>(steps));
  cursor after;
  for (int rank = 0; rank < ranks; ++rank) {
    loader tested(order, source, share(rank, ranks),
                  {.batch = batch,
                   .prefetch = 1 + static_cast<std::size_t>(rank) % 4,
                   .threads = 1 + static_cast<std::size_t>(rank) % 3},
                  from);
    for (auto& step : of_step) {
      const auto& found = tested.next();
      step.insert(step.end(), found.samples.begin(), found.samples.end());
    }
    after = tested.cursor();
  }
  for (const auto& step : of_step) used.insert(used.end(), step.begin(), step.end());
  return after;
}

/// Lets one thread wait until another one opens it.
class gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    opened_.wait(lock, [&] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

}  // namespace

TEST_CASE("all ranks together load each sample once and in order, for 1 to 17 ranks, also after restarts") {
  constexpr std::uint64_t samples = 101;
  const order tested(equal_shards{samples, 10, 3}, 7);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t epoch = 0; epoch < 4; ++epoch) {
    for (std::uint64_t i = 0; i < samples; ++i) expected.push_back(tested.epoch(epoch)[i]);
  }
  std::mt19937 random(1);
  for (int run = 0; run < 10; ++run) {
    std::vector<std::uint64_t> used;
    cursor at;
    for (int part = 0; at.epoch < 3; ++part) {
      const int ranks = run == 0 ? 1 + part % 17 : 1 + static_cast<int>(random() % 17);
      at = run_steps(tested, ranks, 1 + random() % 20, 1 + static_cast<int>(random() % 5), at, used);
      REQUIRE(at.epoch * samples + at.position == used.size());
    }
    REQUIRE(std::equal(used.begin(), used.end(), expected.begin()));
  }
}

TEST_CASE("a mixture is loaded as it is computed") {
  mixture tested({order(5, 1), order(17, 2)}, std::vector<std::uint64_t>{3, 1}, 4);
  tested.change(50, {1, 1});
  std::vector<mixed_sample> expected, used;
  auto positions = tested.epoch();
  for (std::uint64_t i = 0; i < 130; ++i) expected.push_back(positions[i]);
  cursor at;
  for (const int ranks : {1, 3, 2, 17}) at = run_steps(tested, ranks, 10, 3, at, used);
  CHECK(at == cursor{0, 120});
  CHECK(std::equal(used.begin(), used.end(), expected.begin()));
}

TEST_CASE("sources of a mixture are read by their index") {
  const numbers_source small;
  const offset_source large;
  const mixed_sources both(small, large);
  const mixture order_of_both({order(5, 1), order(100, 2)}, std::vector<std::uint64_t>{1, 1}, 3);
  loader tested(order_of_both, both, share(0, 1), {.batch = 20});
  const auto& found = tested.next().samples;
  auto positions = order_of_both.epoch();
  REQUIRE(found.size() == 20);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const mixed_sample each = positions[i];
    CHECK(found[i] == (each.source == 0 ? each.sample : 1000 + each.sample));
  }
  numbers_source::batch_type batch;
  CHECK_THROWS_WITH(both.append({2, 0, 0}, batch), Catch::Contains("source 2 is asked for, and there are 2"));
}

TEST_CASE("an epoch ends with a smaller batch, and a rank may have no samples of it") {
  const numbers_source source;
  loader tested(order(10, 1), source, share(2, 3), {.batch = 4}, {5, 4});
  std::vector<std::size_t> sizes;
  for (const auto& batch : tested.epoch()) {
    CHECK(batch.at.epoch == 5);
    CHECK(batch.own.size() == batch.samples.size());
    sizes.push_back(batch.samples.size());
  }
  CHECK(sizes == std::vector<std::size_t>{1, 0});
  CHECK(tested.cursor() == cursor{6, 0});
  int batches = 0;
  for (const auto& batch : tested.epoch()) {
    CHECK(batch.at == cursor{6, 4 * static_cast<std::uint64_t>(batches)});
    ++batches;
  }
  CHECK(batches == 3);
  CHECK(tested.times().batches == 5);
}

TEST_CASE("no more batches are loaded than the options permit") {
  std::atomic<int> appended = 0;
  const numbers_source source{[&](std::uint64_t) { ++appended; }};
  loader tested(order(1000, 1), source, share(0, 1), {.batch = 10, .prefetch = 3, .threads = 2});
  for (int step = 1; step <= 5; ++step) {
    tested.next();
    std::this_thread::sleep_for(20ms);
    CHECK(appended <= 10 * (step - 1 + 4));
  }
}

TEST_CASE("a step that is longer than loading does not wait") {
  const numbers_source source{[](std::uint64_t) { std::this_thread::sleep_for(5ms); }};
  loader tested(order(1'000'000, 1), source, share(0, 1), {.batch = 1, .prefetch = 8});
  tested.next();
  std::this_thread::sleep_for(60ms);  // as the first steps of a training, which take longer
  const auto waited_before = tested.times().training_waited;
  const auto begin = clock_type::now();
  for (int step = 0; step < 100; ++step) {
    tested.next();
    std::this_thread::sleep_for(6ms);
  }
  const auto waited = tested.times().training_waited - waited_before;
  CHECK(waited * 50 < clock_type::now() - begin);
  CHECK(tested.times().loader_waited > 0ms);
}

TEST_CASE("the loader reports whether the training has waited, or the loader") {
  const auto run = [](auto loading, auto step) {
    const numbers_source source{[=](std::uint64_t) { std::this_thread::sleep_for(loading); }};
    loader tested(order(1000, 1), source, share(0, 1), {.batch = 1, .prefetch = 1});
    for (int i = 0; i < 20; ++i) {
      tested.next();
      std::this_thread::sleep_for(step);
    }
    return tested.times();
  };
  const loader_times slow_source = run(6ms, 0ms), slow_step = run(0ms, 6ms);
  CHECK(slow_source.training_waited > 4 * slow_source.loader_waited);
  CHECK(slow_step.loader_waited > 4 * slow_step.training_waited);
  CHECK(slow_source.loading > 20 * 5ms);
}

TEST_CASE("an error of a loading thread is raised by the next call, and by those after it") {
  for (const std::size_t threads : {1U, 3U}) {
    gate first_used;
    std::atomic<bool> failed = false;
    const order numbers(100, 1);
    const std::uint64_t bad = numbers.epoch(0)[12];
    const numbers_source source{[&](std::uint64_t sample) {
      if (sample != bad) return;
      first_used.wait();
      failed = true;
      raise(errc::corrupted, "'shard' at byte 7: damaged");
    }};
    loader tested(numbers, source, share(0, 1), {.batch = 2, .prefetch = 8, .threads = threads});
    tested.next();
    first_used.open();
    while (!failed) std::this_thread::yield();
    std::this_thread::sleep_for(100ms);  // until the thread has reported it; five batches are ready
    for (int i = 0; i < 2; ++i) {
      try {
        tested.next();
        FAIL("no error");
      } catch (const hocket::error& cause) {
        CHECK(cause.code() == make_error_code(errc::corrupted));
        CHECK(cause.reason() == "position 12 of epoch 0: 'shard' at byte 7: damaged");
      }
    }
    CHECK(tested.cursor() == cursor{0, 2});
  }
}

TEST_CASE("an error of a source of another type has epoch and position, and contains the exception") {
  struct fault {
    std::function<void()> thrower;
    std::error_code code;
    std::string reason;
    std::function<bool(const std::exception_ptr&)> is_kept;
  };
  const auto is_a = [](auto sample) {
    return [sample](const std::exception_ptr& cause) {
      try {
        std::rethrow_exception(cause);
      } catch (const decltype(sample)&) {
        return true;
      } catch (...) {
        return false;
      }
    };
  };
  const std::system_error absent(std::make_error_code(std::errc::no_such_file_or_directory), "shard");
  for (const fault& each : {
           fault{[] { throw std::out_of_range("the user's own"); }, errc::invalid_argument, "the user's own",
                 is_a(std::out_of_range(""))},
           fault{[] { throw std::runtime_error("no disk"); }, errc::invalid_argument, "no disk",
                 is_a(std::runtime_error(""))},
           fault{[&] { throw absent; }, absent.code(), absent.what(), is_a(absent)},
           fault{[] { throw std::bad_alloc(); }, errc::out_of_memory, std::bad_alloc().what(), is_a(std::bad_alloc())},
           fault{[] { throw 7; }, errc::invalid_argument, "the source has thrown an object that is no std::exception",
                 is_a(7)},
       }) {
    const order numbers(10, 1);
    const std::uint64_t bad = numbers.epoch(2)[5];
    const numbers_source source{[&](std::uint64_t sample) {
      if (sample == bad) each.thrower();
    }};
    loader tested(numbers, source, share(0, 1), {.batch = 3}, {2, 4});
    for (int i = 0; i < 2; ++i) {
      try {
        tested.next();
        FAIL("no error");
      } catch (const hocket::error& cause) {
        CHECK(cause.code() == each.code);
        CHECK(cause.reason() == "position 5 of epoch 2: " + each.reason);
        const auto* const nested = dynamic_cast<const std::nested_exception*>(&cause);
        REQUIRE(nested != nullptr);
        CHECK(each.is_kept(nested->nested_ptr()));
      }
    }
  }
}

TEST_CASE("a source that hangs is a timeout, after which the training may wait again") {
  gate opened;
  const numbers_source source{[&](std::uint64_t) { opened.wait(); }};
  loader tested(order(10, 1), source, share(0, 2), {.batch = 4, .timeout = 20ms}, {3, 4});
  try {
    tested.next();
    FAIL("no error");
  } catch (const hocket::error& cause) {
    CHECK(cause.code() == make_error_code(errc::timeout));
    CHECK(cause.reason() ==
          "the batch at position 4 of epoch 3 was not loaded within 20 ms: the source does not respond");
    CHECK(cause.context().ranks == 2);
  }
  opened.open();
  for (;;) {  // the thread continues
    try {
      CHECK(tested.next().at == cursor{3, 4});
      break;
    } catch (const hocket::error&) {}
  }
}

TEST_CASE("the destructor waits for one sample, not for a batch") {
  std::atomic<int> appended = 0;
  const numbers_source source{[&](std::uint64_t) {
    ++appended;
    std::this_thread::sleep_for(2ms);
  }};
  {
    loader tested(order(100'000, 1), source, share(0, 1), {.batch = 10'000, .threads = 2});
    while (appended == 0) std::this_thread::yield();
  }
  CHECK(appended < 1000);  // of 20 000 that the threads had begun
}

TEST_CASE("loaders that can't work are refused") {
  const numbers_source source;
  const auto make = [&](std::uint64_t samples, const loader_options& options, const cursor& from) {
    loader tested(order(samples, 1), source, share(0, 1), options, from);
  };
  CHECK_THROWS_WITH(make(10, {.prefetch = 0}, {}), Catch::Contains("prefetch of a loader must be at least 1"));
  CHECK_THROWS_WITH(make(10, {.threads = 0}, {}), Catch::Contains("threads of a loader must be at least 1"));
  CHECK_THROWS_WITH(make(10, {.batch = 0}, {}), Catch::Contains("at least one sample"));
  CHECK_THROWS_WITH(make(0, {}, {}), Catch::Contains("no samples"));
  CHECK_THROWS_WITH(make(10, {}, {0, 11}), Catch::Contains("it belongs to other data"));
}
