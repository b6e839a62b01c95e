// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Ranks whose device, pinned and managed memory belongs to `host_driver`, and buffers in that memory.
#pragma once

#include "support/thread_ranks.hpp"
#include "transport/cuda_ipc/processes.hpp"

#include <hocket/collective/device/staged.hpp>
#include <hocket/hocket.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace hocket_test {

using hocket::cuda_ipc::memory_space;

/// One rank's device, with a stream of the caller.
class rank_device {
 public:
  explicit rank_device(host_driver& driver) : driver_(driver) {
    if (driver_.stream_create(&stream_, 0) != status::success) std::abort();
  }
  rank_device(const rank_device&) = delete;
  rank_device& operator=(const rank_device&) = delete;
  ~rank_device() { driver_.stream_destroy(stream_); }

  host_driver& driver() const { return driver_; }
  ipc::stream_handle stream() const { return stream_; }
  hocket::cuda::stream_of<host_driver> order() const { return {&driver_, stream_}; }

 private:
  host_driver& driver_;
  ipc::stream_handle stream_ = nullptr;
};

/// Elements in some kind of memory, between guard elements that must stay unchanged.
template <class T>
class placed_vector {
 public:
  placed_vector(host_driver& driver, std::size_t size, memory_space where, std::size_t offset = 0)
      : driver_(driver), where_(where), size_(size), offset_(offset + guard) {
    if (where == memory_space::pinned) {
      void* made = nullptr;
      if (driver.mem_host_alloc(&made, bytes(), 0) != status::success) std::abort();
      base_ = reinterpret_cast<ipc::address>(made);
    } else if (driver.mem_alloc(&base_, bytes()) != status::success) {
      std::abort();
    }
    if (where == memory_space::managed) driver.manage(base_);
    std::memset(reinterpret_cast<void*>(base_), 0xa5, bytes());
  }
  placed_vector(const placed_vector&) = delete;
  placed_vector& operator=(const placed_vector&) = delete;
  ~placed_vector() {
    if (where_ == memory_space::pinned) {
      driver_.mem_free_host(reinterpret_cast<void*>(base_));
    } else {
      driver_.mem_free(base_);
    }
  }

  T* data() const { return reinterpret_cast<T*>(base_) + offset_; }
  std::size_t size() const { return size_; }
  std::span<T> span() const { return {data(), size_}; }

  /// Writes in stream order, as a kernel would.
  void write(ipc::stream_handle on, std::vector<T> values) {
    for (int i = 0; i < 10; ++i) driver_.queue(on, [] {});  // delays the write
    driver_.queue(on, [values = std::move(values), to = data()] { std::copy(values.begin(), values.end(), to); });
  }
  void read(ipc::stream_handle on, std::vector<T>& values) {
    values.resize(size_);
    driver_.queue(on, [&values, from = span()] { std::copy(from.begin(), from.end(), values.begin()); });
  }

  bool intact() const {
    const auto* const all = reinterpret_cast<const unsigned char*>(base_);
    const auto untouched = [&](std::size_t begin, std::size_t end) {
      for (; begin < end; ++begin) {
        if (all[begin] != 0xa5) return false;
      }
      return true;
    };
    return untouched(0, offset_ * sizeof(T)) && untouched((offset_ + size_) * sizeof(T), bytes());
  }

 private:
  static constexpr std::size_t guard = 16;
  std::size_t bytes() const { return (offset_ + size_ + guard) * sizeof(T); }

  host_driver& driver_;
  memory_space where_;
  std::size_t size_;
  std::size_t offset_;
  ipc::address base_ = 0;
};

/// Runs `body(rank, device)` on threads with a device each, and checks that no resources are left on any of them.
template <class Body>
void on_devices(int ranks, bool lazy, Body body) {
  host_machine machine;
  std::vector<where_rank_runs> where;
  for (int rank = 0; rank < ranks; ++rank) where.push_back({rank, 0});
  processes all(machine, where);
  on_ranks(ranks, [&](thread_rank& me) {
    host_driver& driver = all.driver(static_cast<std::size_t>(me.rank()));
    if (lazy) driver.be_lazy(static_cast<unsigned>(100 * ranks + me.rank()));
    const rank_device mine(driver);
    body(me, mine);
    driver.finish_streams();
  });
  check_clean(machine, all);
  for (std::size_t rank = 0; rank < all.size(); ++rank) CHECK(all.driver(rank).copies_of_freed == 0);
}

}  // namespace hocket_test
