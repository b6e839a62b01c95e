// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An all-gather that needs no store and no port, for ranks that a test has forked.
#pragma once

#include <hocket/bootstrap/blob.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sys/mman.h>

namespace ucx_test {

using hocket::bootstrap::blob;
using hocket::bootstrap::byte_view;

/// An all-gather through memory that forked processes share. Each slot is used for every second round.
class shared_all_gather {
 public:
  static constexpr std::size_t most_ranks = 8, most_bytes = 1 << 16;

  shared_all_gather() {
    void* const memory = ::mmap(nullptr, sizeof(area), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    area_ = new (memory) area;
  }
  shared_all_gather(const shared_all_gather&) = delete;
  shared_all_gather& operator=(const shared_all_gather&) = delete;
  ~shared_all_gather() { ::munmap(area_, sizeof(area)); }

  std::vector<blob> operator()(int rank, int ranks, byte_view mine) {
    const std::uint32_t round = ++round_;
    place& own = area_->of[round % 2][static_cast<std::size_t>(rank)];
    if (mine.size() > most_bytes) throw std::length_error("the blob is longer than expected");
    own.size = mine.size();
    if (!mine.empty()) std::memcpy(own.bytes.data(), mine.data(), mine.size());
    own.round.store(round);
    std::vector<blob> all;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (int other = 0; other < ranks; ++other) {
      const place& their = area_->of[round % 2][static_cast<std::size_t>(other)];
      while (their.round.load() != round) {
        if (std::chrono::steady_clock::now() > until) throw std::runtime_error("a rank does not gather");
        std::this_thread::yield();
      }
      all.emplace_back(their.bytes.begin(), their.bytes.begin() + static_cast<std::ptrdiff_t>(their.size));
    }
    return all;
  }
  std::uint32_t rounds() const noexcept { return round_; }

 private:
  struct place {
    std::atomic<std::uint32_t> round{0};
    std::size_t size = 0;
    std::array<std::byte, most_bytes> bytes{};
  };
  struct area {
    std::array<std::array<place, most_ranks>, 2> of;
  };

  area* area_;
  std::uint32_t round_ = 0;  ///< of this process
};

}  // namespace ucx_test
