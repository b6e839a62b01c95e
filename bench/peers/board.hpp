// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Memory that the ranks of a measurement share, independent of the library that is measured: a barrier, a maximum over
/// ranks, and the samples of all ranks. Every library is measured with the same one.
#pragma once

#include "processor.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace compare {

class board {
 public:
  static constexpr int most_ranks = 64;
  static constexpr std::size_t most_samples = 4096;

  /// Maps `folder`/board, which the driver has created with zeros.
  board(const std::string& folder, int rank, int ranks) : rank_(rank), ranks_(ranks) {
    if (ranks > most_ranks) throw std::invalid_argument("at most 64 ranks can be compared");
    is_crowded_ = ranks > static_cast<int>(given_cores().size());
    const int file = ::open((folder + "/board").c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) throw std::system_error(errno, std::generic_category(), folder + "/board");
    struct stat found {};
    const bool is_long = ::fstat(file, &found) == 0 && found.st_size >= static_cast<off_t>(sizeof(contents));
    if (!is_long) {  // access behind its end would end the process by SIGBUS
      ::close(file);
      throw std::runtime_error(folder + "/board is too short: the driver must make it of at least " +
                               std::to_string(sizeof(contents)) + " bytes");
    }
    void* memory = ::mmap(nullptr, sizeof(contents), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping the board");
    contents_ = static_cast<contents*>(memory);
  }
  board(const board&) = delete;
  board& operator=(const board&) = delete;
  ~board() { ::munmap(contents_, sizeof(contents)); }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  /// Returns whether ranks outnumber cores.
  bool is_crowded() const { return is_crowded_; }

  /// Waits until all ranks have called this. Yields the core if ranks outnumber cores.
  void sync() {
    const std::uint64_t target = ++epoch_;
    contents_->lines[rank_].epoch.store(target, std::memory_order_release);
    for (int other = 0; other < ranks_; ++other) {
      for (int polls = 0; contents_->lines[other].epoch.load(std::memory_order_acquire) < target; ++polls) {
        if (is_crowded_ || polls > 10'000) {
          yield();
        } else {
          pause();
        }
      }
    }
  }

  /// Returns the largest value that a rank has passed.
  double maximum(double value) {
    contents_->lines[rank_].value = value;
    sync();
    double largest = value;
    for (int other = 0; other < ranks_; ++other) largest = std::max(largest, contents_->lines[other].value);
    sync();  // before any rank writes its next value
    return largest;
  }

  /// The samples of this rank.
  double* samples() { return contents_->samples[rank_]; }

  /// Replaces each sample of this rank by the largest of all ranks. The other ranks must not write meanwhile.
  void combine_samples(std::size_t count) {
    for (int other = 0; other < ranks_; ++other) {
      for (std::size_t i = 0; i < count; ++i) {
        samples()[i] = std::max(samples()[i], contents_->samples[other][i]);
      }
    }
  }

 private:
  struct alignas(128) line {  // two cache lines, because processors prefetch the neighbour
    std::atomic<std::uint64_t> epoch;
    double value;
  };
  struct contents {
    line lines[most_ranks];
    double samples[most_ranks][most_samples];
  };

  int rank_;
  int ranks_;
  bool is_crowded_ = false;
  std::uint64_t epoch_ = 0;
  contents* contents_ = nullptr;
};

}  // namespace compare
