// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A stream of a driver for tests: a queue with a thread that runs one task after the other, and repeats a task that
/// can't complete yet. It can be captured like a graph: tasks are recorded, and run when they are replayed.
#pragma once

#include <hocket/transport/cuda_ipc/driver_types.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace hocket_test {

class host_queue {
 public:
  /// Memory that a task touches.
  struct range {
    hocket::cuda_ipc::address begin = 0;
    std::size_t size = 0;
  };
  struct task {
    std::function<bool()> attempt;  ///< returns false if the task can't complete yet
    std::vector<range> touches;

    bool uses(const range& memory) const {
      for (const range& one : touches) {
        if (one.begin < memory.begin + memory.size && memory.begin < one.begin + one.size) return true;
      }
      return false;
    }
  };
  using graph = std::vector<task>;

  host_queue() : worker_([this] { work(); }) {}
  host_queue(const host_queue&) = delete;
  host_queue& operator=(const host_queue&) = delete;
  ~host_queue() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  static host_queue& of(hocket::cuda_ipc::stream_handle stream) { return *reinterpret_cast<host_queue*>(stream); }
  hocket::cuda_ipc::stream_handle handle() { return reinterpret_cast<hocket::cuda_ipc::stream_handle>(this); }

  void push(task what) {
    if (captured_) {
      captured_->push_back(std::move(what));
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(what));
    }
    changed_.notify_all();
  }
  void push(std::function<bool()> attempt, std::vector<range> touches = {}) {
    push(task{std::move(attempt), std::move(touches)});
  }

  void begin_capture() { captured_.emplace(); }
  graph end_capture() { return *std::exchange(captured_, std::nullopt); }
  bool capturing() const { return captured_.has_value(); }
  void replay(const graph& all) {
    for (const task& each : all) push(each);
  }

  bool busy() {
    const std::lock_guard lock(mutex_);
    return !tasks_.empty();
  }
  /// Returns whether a queued task uses this memory.
  bool uses(const range& memory) {
    const std::lock_guard lock(mutex_);
    return std::any_of(tasks_.begin(), tasks_.end(), [&](const task& each) { return each.uses(memory); });
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || !tasks_.empty(); });
      if (stopped_) return;
      const std::function<bool()> attempt = tasks_.front().attempt;
      for (int tries = 0; !stopped_; ++tries) {
        lock.unlock();
        const bool done = attempt();
        if (!done && tries < 100) std::this_thread::yield();
        if (!done && tries >= 100) std::this_thread::sleep_for(std::chrono::microseconds(50));
        lock.lock();
        if (!done) continue;
        tasks_.pop_front();
        break;
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<task> tasks_;
  std::optional<graph> captured_;  ///< used only by the thread of the rank
  bool stopped_ = false;
  std::thread worker_;
};

}  // namespace hocket_test
