// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Runs the body of a test on threads as ranks. Ranks record failures; the main thread asserts.
///
/// Nothing hangs: communicators time out after 30 s with an error that states where the rank is; a rank that ends with
/// an exception aborts the others; and as a last resort a watchdog prints where all ranks are and ends the program.
#pragma once

#include "support/catch.hpp"

#include <hocket/group/local.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace hocket_test {

inline constexpr std::chrono::seconds rank_timeout(30);
inline constexpr std::chrono::seconds watchdog_timeout(100);

/// A rank, as the body of a test sees it. Used only by that rank's thread, except `place` and `complaints`.
class thread_rank {
 public:
  hocket::local::communicator& comm() noexcept { return *comm_; }
  int rank() const noexcept { return comm_->rank(); }
  int size() const noexcept { return comm_->size(); }

  /// Sets the next action of this rank, for the watchdog and for complaints: a text, or a function that returns it.
  template <class Text>
  void at(Text&& text) {
    const std::lock_guard lock(mutex_);
    place_ = made(text);
  }

  /// Records a complaint if `holds` is false. `text` describes the failed check: a text, or a function that returns it.
  template <class Text>
  bool check(bool holds, Text&& text) {
    if (!holds) complain(made(text));
    return holds;
  }

  void complain(const std::string& text) {
    const std::lock_guard lock(mutex_);
    if (complaints_.size() < most_complaints) complaints_.push_back(place_.empty() ? text : place_ + ": " + text);
  }

  /// Runs `call`, which must throw a `hocket::error` with code `expected`; returns the error.
  std::optional<hocket::error> expect(hocket::errc expected, const std::function<void()>& call) {
    try {
      call();
      complain("no error where '" + hocket::make_error_code(expected).message() + "' was expected");
    } catch (const hocket::error& found) {
      check(found.code() == expected,
            [&] { return "expected '" + hocket::make_error_code(expected).message() + "', not: " + found.what(); });
      return found;
    }
    return std::nullopt;
  }

  std::string place() const {
    const std::lock_guard lock(mutex_);
    return place_;
  }
  std::vector<std::string> complaints() const {
    const std::lock_guard lock(mutex_);
    return complaints_;
  }

 private:
  friend class thread_ranks;
  static constexpr std::size_t most_complaints = 10;

  template <class Text>
  static std::string made(Text& text) {
    if constexpr (std::is_invocable_v<Text&>) {
      return text();
    } else {
      return std::string(text);
    }
  }

  std::optional<hocket::local::communicator> comm_;
  mutable std::mutex mutex_;
  std::string place_;
  std::vector<std::string> complaints_;
};

/// One run of a body on all ranks.
class thread_ranks {
 public:
  using body = std::function<void(thread_rank&)>;

  thread_ranks(int count, const body& each) : body_(each), ranks_(static_cast<std::size_t>(count)) {}

  void run() {
    const auto place = std::make_shared<hocket::local::world>(static_cast<int>(ranks_.size()));
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      threads.emplace_back([this, place, rank] { run_rank(place, rank); });
    }
    watch();
    for (std::thread& thread : threads) thread.join();
    for (thread_rank& each : ranks_) each.comm_.reset();
  }

  std::vector<std::string> complaints() const {
    std::vector<std::string> all;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (const std::string& each : ranks_[rank].complaints()) {
        all.push_back("rank " + std::to_string(rank) + " of " + std::to_string(ranks_.size()) + ": " + each);
      }
    }
    return all;
  }

 private:
  void run_rank(const std::shared_ptr<hocket::local::world>& place, std::size_t rank) {
    thread_rank& me = ranks_[rank];
    try {
      {
        auto comm = hocket::local::connect(place, static_cast<int>(rank), rank_timeout);
        comm.set_timeout(rank_timeout);
        const std::lock_guard lock(mutex_);
        me.comm_.emplace(std::move(comm));
        if (failed_) me.comm_->abort();
      }
      body_(me);
    } catch (const std::exception& problem) {
      me.complain(std::string("ended by an exception: ") + problem.what());
      place->abandon(static_cast<int>(rank));
      abort_all();
    }
    const std::lock_guard lock(mutex_);
    ++ended_;
    changed_.notify_all();
  }

  /// Aborts all ranks, so that a failed test ends immediately.
  void abort_all() {
    const std::lock_guard lock(mutex_);
    failed_ = true;
    for (thread_rank& each : ranks_) {
      if (each.comm_) each.comm_->abort();
    }
  }

  void watch() {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, watchdog_timeout, [this] { return ended_ == ranks_.size(); })) return;
    std::fprintf(stderr, "watchdog: %zu of %zu ranks have not ended\n", ranks_.size() - ended_, ranks_.size());
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      std::fprintf(stderr, "rank %zu is at: %s\n", rank, ranks_[rank].place().c_str());
    }
    for (const std::string& each : complaints()) std::fprintf(stderr, "%s\n", each.c_str());
    std::_Exit(1);
  }

  const body& body_;
  std::vector<thread_rank> ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t ended_ = 0;
  bool failed_ = false;
};

/// Runs `body(thread_rank&)` on `ranks` threads, and fails the test with all ranks' complaints if there are any.
inline void on_ranks(int ranks, const thread_ranks::body& body) {
  thread_ranks all(ranks, body);
  all.run();
  std::string text;
  for (const std::string& each : all.complaints()) text += each + '\n';
  INFO(text);
  CHECK(text.empty());
}

}  // namespace hocket_test
