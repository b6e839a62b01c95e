// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// LightGBM's network hooks over hocket: the reduce-scatter by `all_to_all_v` and the reducer that LightGBM passes, the
/// all-gather by `all_gather_v`.
#pragma once

#include "lightgbm_library.hpp"
#include "processor.hpp"

#include <hocket/hocket.hpp>
#include <hocket/ucx.hpp>

#include <bit>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace lightgbm {

/// What the hooks have done.
struct traffic {
  std::int64_t calls = 0;
  std::int64_t bytes = 0;  ///< of the vectors: `in` of each reduce-scatter, `out` of each all-gather
  double seconds = 0;
};

/// Returns the failure that a test requests, or an empty text.
inline std::string requested_fault() {
  const char* text = std::getenv("HOCKET_COMPARE_FAULT");
  return text == nullptr ? "" : text;
}

class hooks {
 public:
  /// One object at a time, because LightGBM passes no argument that could identify it.
  explicit hooks(hocket::ucx::communicator& comm) : comm_(comm), ranks_(static_cast<std::size_t>(comm.size())) {
    current_ = this;
  }
  hooks(const hooks&) = delete;
  hooks& operator=(const hooks&) = delete;
  ~hooks() { current_ = nullptr; }

  void install(library& lightgbm) {
    lightgbm.connect_by_hooks(comm_.size(), comm_.rank(), &reduce_scatter, &all_gather);
  }

  void start_counting() { counted_ = {}; }
  const traffic& counted() const { return counted_; }

 private:
  static void reduce_scatter(char* in, size_type in_bytes, int element_bytes, const size_type* starts,
                             const size_type* lengths, int ranks, char* out, size_type out_bytes,
                             const reducer& reduce) {
    run("reduce-scatter", in_bytes, [&](hooks& self) {
      const std::size_t all = self.read_blocks(starts, lengths, ranks);
      const std::size_t own = self.own_length();
      self.require(all <= static_cast<std::size_t>(in_bytes) && own <= static_cast<std::size_t>(out_bytes));
      self.exchange({in, all});
      self.combine(element_bytes, reduce);
      std::memcpy(out, self.block(0), own);
    });
  }

  static void all_gather(char* in, size_type in_bytes, const size_type* starts, const size_type* lengths, int ranks,
                         char* out, size_type out_bytes) {
    run("all-gather", out_bytes, [&](hooks& self) {
      const std::size_t all = self.read_blocks(starts, lengths, ranks);
      const std::size_t own = self.own_length();
      self.require(all <= static_cast<std::size_t>(out_bytes) && own == static_cast<std::size_t>(in_bytes));
      char* const mine = out + starts[self.comm_.rank()];
      // LightGBM's all-reduce passes its own block at the beginning of `out`, whichever block it is.
      std::memmove(mine, in, own);
      hocket::all_gather_v(self.comm_, std::span<const char>(mine, own), std::span(out, all),
                           hocket::counts{self.lengths_});
    });
  }

  /// Calls `body`. An exception must not unwind LightGBM's frames, which C code may have called: it ends the process.
  template <class Body>
  static void run(const char* name, size_type bytes, Body&& body) noexcept {
    const double begin = compare::now();
    try {
      if (current_ == nullptr) throw std::logic_error("the communicator has been destroyed");
      current_->fail_on_purpose();
      body(*current_);
    } catch (const std::exception& problem) {
      end(name, problem.what());
    } catch (...) {
      end(name, "an exception that is not a std::exception");
    }
    traffic& counted = current_->counted_;
    ++counted.calls;
    counted.bytes += bytes;
    counted.seconds += compare::now() - begin;
  }

  [[noreturn]] static void end(const char* name, const char* reason) {
    const int rank = current_ == nullptr ? -1 : current_->comm_.rank();
    std::fprintf(stderr, "lightgbm: rank %d: the %s over hocket failed: %s\n", rank, name, reason);
    std::fflush(nullptr);
    std::_Exit(3);
  }

  /// Stores the lengths of the blocks, and returns their sum.
  std::size_t read_blocks(const size_type* starts, const size_type* lengths, int ranks) {
    require(static_cast<std::size_t>(ranks) == ranks_);
    lengths_.assign(lengths, lengths + ranks);
    std::size_t sum = 0;
    for (std::size_t rank = 0; rank < ranks_; ++rank) {
      require(starts[rank] >= 0 && lengths[rank] >= 0 && static_cast<std::size_t>(starts[rank]) == sum);
      sum += lengths_[rank];
    }
    return sum;
  }

  static void require(bool holds) {
    if (!holds) throw std::invalid_argument("LightGBM's blocks are not consecutive, or exceed its buffers");
  }

  std::size_t own_length() const { return lengths_[static_cast<std::size_t>(comm_.rank())]; }
  char* block(std::size_t rank) { return blocks_.data() + rank * own_length(); }

  /// Collects the own block of all ranks.
  void exchange(std::span<const char> in) {
    received_.assign(ranks_, own_length());
    blocks_.resize(ranks_ * own_length());
    hocket::all_to_all_v(comm_, in, std::span(blocks_), hocket::send_counts{lengths_},
                         hocket::receive_counts{received_});
  }

  /// Combines the blocks into the first one, in the order of LightGBM's recursive halving: the sums of floating-point
  /// numbers then have the same bits as over its sockets. If the number of ranks is not a power of two, LightGBM first
  /// combines pairs of the last ranks, so that a power of two remains. (It uses another order for such numbers and
  /// vectors from 10 MiB, which this model does not have.)
  void combine(int element_bytes, reducer reduce) {
    const std::size_t groups = std::bit_floor(ranks_);
    const std::size_t singles = 2 * groups - ranks_;
    const auto first_of = [&](std::size_t group) { return group < singles ? group : 2 * group - singles; };
    const auto add = [&](std::size_t from, std::size_t to) {
      reduce(block(from), block(to), element_bytes, static_cast<size_type>(own_length()));
    };
    for (std::size_t group = singles; group < groups; ++group) add(first_of(group) + 1, first_of(group));
    for (std::size_t distance = groups / 2; distance > 0; distance /= 2) {
      for (std::size_t group = 0; group < distance; ++group) add(first_of(group + distance), first_of(group));
    }
  }

  /// Fails as HOCKET_COMPARE_FAULT requests, on the last rank, so that tests can check how failures are reported.
  void fail_on_purpose() const {
    if (counted_.calls != 20 || comm_.rank() + 1 != comm_.size()) return;
    const std::string fault = requested_fault();
    if (fault == "error") throw std::runtime_error("failed on purpose");
    if (fault == "stop") ::raise(SIGSTOP);
  }

  static inline hooks* current_ = nullptr;

  hocket::ucx::communicator& comm_;
  std::size_t ranks_;
  std::vector<std::size_t> lengths_;
  std::vector<std::size_t> received_;
  std::vector<char> blocks_;
  traffic counted_;
};

}  // namespace lightgbm
