// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Counters, gauges and histograms that any thread updates in a few nanoseconds without a lock, and any thread reads.
///
/// Threads that update one variable wait for its cache line. So counters and histograms have a cell for each of the
/// first 16 threads, on cache lines of its own; a thread changes its cell by a load and a store. Further threads share
/// a cell, which they change by atomic additions. A value is the sum of the cells.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/float_bits.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace observe {
namespace detail {

inline constexpr std::size_t cache_line = 64;
inline constexpr unsigned owned_cells = 16;           ///< each belongs to one thread
inline constexpr unsigned shared_cell = owned_cells;  ///< the index of the cell of all other threads
inline constexpr unsigned all_cells = owned_cells + 1;
inline constexpr unsigned no_cell_yet = ~0U;

// Visible in all shared objects, because two threads must never own the same cell of a metric.
/// Bit i: cell i belongs to a thread.
HOCKET_EXPORT_TYPE inline constinit std::atomic<std::uint32_t> cells_in_use{0};
HOCKET_EXPORT_TYPE inline constinit thread_local unsigned cell_of_thread = no_cell_yet;

/// Returns a thread's cell when the thread ends. Its later updates, by destructors, go to the shared cell.
struct cell_owner {
  explicit cell_owner(unsigned which) noexcept : cell(which) {}
  cell_owner(const cell_owner&) = delete;
  cell_owner& operator=(const cell_owner&) = delete;
  ~cell_owner() {
    cell_of_thread = shared_cell;
    if (cell != shared_cell) cells_in_use.fetch_and(~(1U << cell), std::memory_order_release);
  }

  unsigned cell;
};

/// Takes the first free cell. The next owner of a cell sees the values of the previous one.
HOCKET_COLD inline unsigned take_cell() noexcept {
  std::uint32_t used = cells_in_use.load(std::memory_order_relaxed);
  unsigned cell;
  do {
    cell = static_cast<unsigned>(std::countr_one(used));
    if (cell >= owned_cells) cell = shared_cell;
  } while (cell != shared_cell && !cells_in_use.compare_exchange_weak(
                                      used, used | 1U << cell, std::memory_order_acquire, std::memory_order_relaxed));
  thread_local const cell_owner owner(cell);
  return cell_of_thread = cell;
}

inline unsigned cell_of_this_thread() noexcept {
  const unsigned cell = cell_of_thread;
  return cell != no_cell_yet ? cell : take_cell();
}

/// Adds to a word of the cell `cell`, which must be that of this thread.
template <class Number>
void add_to(std::atomic<Number>& word, unsigned cell, Number amount) noexcept {
  if (cell != shared_cell) {
    word.store(word.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  } else {
    word.fetch_add(amount, std::memory_order_relaxed);
  }
}

/// Does the same for a word with the bits of a number.
inline void add_to_bits(std::atomic<std::uint64_t>& word, unsigned cell, double amount) noexcept {
  const auto sum = [&](std::uint64_t bits) {
    return std::bit_cast<std::uint64_t>(std::bit_cast<double>(bits) + amount);
  };
  std::uint64_t before = word.load(std::memory_order_relaxed);
  if (cell != shared_cell) {
    word.store(sum(before), std::memory_order_relaxed);
  } else {
    while (!word.compare_exchange_weak(before, sum(before), std::memory_order_relaxed)) {}
  }
}

}  // namespace detail

/// A number that only grows: calls, bytes, seconds. Exact for whole numbers up to 2^53.
///
/// **Threads.** All functions may be called by any thread at any time; a reader sees each update soon, not at once.
class counter {
 public:
  counter() noexcept = default;
  counter(const counter&) = delete;
  counter& operator=(const counter&) = delete;

  /// Adds `amount`. One that is negative, infinite or no number is not added: the sum could never be used again.
  void add(double amount = 1) noexcept {
    if (!(amount >= 0 && hocket::detail::is_finite(amount))) return;
    const unsigned cell = detail::cell_of_this_thread();
    detail::add_to(cells_[cell].value, cell, amount);
  }

  double value() const noexcept {
    double sum = 0;
    for (const auto& each : cells_) sum += each.value.load(std::memory_order_relaxed);
    return sum;
  }

 private:
  struct alignas(detail::cache_line) padded_value {
    std::atomic<double> value{0};
  };
  std::array<padded_value, detail::all_cells> cells_{};
};

/// A number that grows and shrinks: a loss, bytes in use, a queue's length.
///
/// **Threads.** As for `counter`.
class gauge {
 public:
  gauge() noexcept = default;
  gauge(const gauge&) = delete;
  gauge& operator=(const gauge&) = delete;

  void set(double value) noexcept { value_.store(value, std::memory_order_relaxed); }
  /// Adds `amount`, which may be negative.
  void add(double amount) noexcept { value_.fetch_add(amount, std::memory_order_relaxed); }
  double value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  alignas(detail::cache_line) std::atomic<double> value_{0};
};

/// What a histogram contains. Updates that are in progress may be in some members only.
struct distribution {
  std::vector<std::uint64_t> counts;  ///< of each bucket; the last is that of values above all bounds
  double sum = 0;                     ///< of all finite values

  std::uint64_t count() const noexcept {
    std::uint64_t all = 0;
    for (const std::uint64_t each : counts) all += each;
    return all;
  }
};

/// Counts values by size. Bucket i has the values that are at most `bounds()[i]` and greater than the bound before; one
/// more bucket has the values above all bounds, and those that are no numbers.
///
/// **Threads.** As for `counter`.
class histogram {
 public:
  /// `bounds` must be finite and increasing, as `registry` checks.
  explicit histogram(std::vector<double> bounds)
      : bounds_(std::move(bounds)), lines_per_cell_((1 + buckets() + words_per_line - 1) / words_per_line),
        lines_(std::make_unique<line[]>(detail::all_cells * lines_per_cell_)) {}
  histogram(const histogram&) = delete;
  histogram& operator=(const histogram&) = delete;

  /// Counts `value`. The sum has the finite values alone: one other would make it useless forever, whereas the counts
  /// still show it.
  void record(double value) noexcept {
    const unsigned cell = detail::cell_of_this_thread();
    line* const own = &lines_[cell * lines_per_cell_];
    if (hocket::detail::is_finite(value)) detail::add_to_bits(own->words[0], cell, value);
    detail::add_to(count_in(own, bucket_of(value)), cell, std::uint64_t{1});
  }

  std::span<const double> bounds() const noexcept { return bounds_; }

  distribution value() const {
    distribution result{std::vector<std::uint64_t>(buckets()), 0};
    for (unsigned cell = 0; cell < detail::all_cells; ++cell) {
      line* const its = &lines_[cell * lines_per_cell_];
      result.sum += std::bit_cast<double>(its->words[0].load(std::memory_order_relaxed));
      for (std::size_t i = 0; i < buckets(); ++i) result.counts[i] += count_in(its, i).load(std::memory_order_relaxed);
    }
    return result;
  }

 private:
  static constexpr std::size_t words_per_line = detail::cache_line / sizeof(std::uint64_t);

  /// The first word of a cell has the bits of the sum, the others are counts.
  struct alignas(detail::cache_line) line {
    std::array<std::atomic<std::uint64_t>, words_per_line> words{};
  };

  std::size_t buckets() const noexcept { return bounds_.size() + 1; }

  static std::atomic<std::uint64_t>& count_in(line* cell, std::size_t bucket) noexcept {
    return cell[(bucket + 1) / words_per_line].words[(bucket + 1) % words_per_line];
  }

  std::size_t bucket_of(double value) const noexcept {
    std::size_t first = 0;
    for (std::size_t left = bounds_.size(); left > 0;) {
      const std::size_t middle = left / 2;
      const bool is_above = !(value <= bounds_[first + middle]);
      first = is_above ? first + middle + 1 : first;
      left = is_above ? left - middle - 1 : middle;
    }
    return first;
  }

  std::vector<double> bounds_;
  std::size_t lines_per_cell_;
  std::unique_ptr<line[]> lines_;
};

/// Returns `count` bounds from `first` on, each `factor` times the one before: for durations and sizes.
inline std::vector<double> exponential_bounds(double first, double factor, std::size_t count) {
  std::vector<double> result;
  for (double bound = first; result.size() < count; bound *= factor) result.push_back(bound);
  return result;
}

/// Returns `count` bounds from `first` on, each `width` above the one before.
inline std::vector<double> linear_bounds(double first, double width, std::size_t count) {
  std::vector<double> result;
  while (result.size() < count) result.push_back(first + width * static_cast<double>(result.size()));
  return result;
}

}  // namespace observe
HOCKET_END_NAMESPACE
