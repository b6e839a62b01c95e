// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Loads the batches of a rank in the background, so that a training does not wait for storage.
///
/// @code
/// const hocket::data::token_file file("train.bin");
/// const auto samples = file.samples(1024);
/// hocket::data::loader batches(hocket::data::order(samples.size(), seed), samples, hocket::data::share(comm),
///                              {.batch = 512, .prefetch = 8}, from);
/// for (auto& batch : batches.epoch()) {
///   train(batch.samples);
///   at = batches.cursor();  // for a checkpoint
/// }
/// @endcode
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/thread_name.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/input.hpp>
#include <hocket/data/share.hpp>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// A source to which its loader reports how far it has come: `loaded_until(cursor)`, before it loads the first batch
/// and after others, when all samples before the cursor are loaded; and `loading_ends()`, which must not fail and must
/// end waits of `append`, from the destructor.
template <class Source>
concept reports_loading = requires(const Source& from, const cursor& at) {
  from.loaded_until(at);
  from.loading_ends();
};

struct loader_options {
  std::uint64_t batch = 1;   ///< samples of a batch over all ranks; must be equal on all ranks
  std::size_t prefetch = 4;  ///< batches that may be ready before they are needed
  std::size_t threads = 1;   ///< that load; more than one help if the source waits for storage
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  ///< longest time that `next` waits for a batch
};

/// One rank's samples of a batch.
template <class Samples>
struct loaded_batch {
  data::cursor at;    ///< where the batch begins
  positions whole;    ///< positions of all ranks' samples
  positions own;      ///< positions of this rank's samples, which may be none
  Samples samples{};  ///< as the source has appended them, in the order of positions
};

/// How long the training and the loader waited for each other, since the loader was made.
struct loader_times {
  std::uint64_t batches = 0;                    ///< that `next` has returned
  std::chrono::nanoseconds training_waited{0};  ///< in `next`, because a batch was not ready
  std::chrono::nanoseconds loader_waited{0};    ///< by the loading threads together, because all batches were ready
  std::chrono::nanoseconds loading{0};          ///< that the loading threads took to load batches
};

/// Loads batches in the background, and returns them in order. `Order` is an `order` or a `mixture`, of which the
/// loader has a copy; the source must outlive the loader. Order, size of batches and first cursor must be equal on all
/// ranks; then all ranks' batches together are the same for any number of ranks.
///
/// Memory: that of `prefetch + 1` batches of this rank, which are used again. `next`, `cursor` and `epoch` must be
/// called by one thread at a time. The destructor ends the threads, which takes as long as the source needs for one
/// sample.
template <class Order, class Source>
class loader {
  using order_view = decltype(std::declval<const Order&>().epoch(0));
  using sample_type = decltype(std::declval<order_view&>()[0]);

 public:
  static_assert(
      source<Source, sample_type>,
      "hocket: a loader needs a source with batch_type and append(sample, batch) for the samples of the order");
  using batch_type = loaded_batch<typename Source::batch_type>;

  /// Starts to load the batches from `from` on. Raises `invalid_argument` if the cursor is beyond the end of its epoch,
  /// if there are no samples, or if an option is 0.
  loader(Order order, const Source& from_source, const share& of, const loader_options& options = {},
         const data::cursor& from = {})
      : order_(std::move(order)), source_(from_source), share_(of), options_(valid(options)),
        sizes_(order_.size(), options.batch), slots_(options.prefetch + 1), cursor_(sizes_.normal(from)),
        next_to_load_(cursor_), loaded_until_(cursor_), ender_{*this} {
    if constexpr (reports_loading<Source>) source_.loaded_until(cursor_);
    for (std::size_t i = 0; i < options.threads; ++i) threads_.emplace_back([this] { run(); });
  }
  loader(Order, const Source&&, const share&, const loader_options& = {}, const data::cursor& = {}) = delete;
  loader(const loader&) = delete;
  loader& operator=(const loader&) = delete;

  /// Waits for the next batch and returns it; it is valid until the next call. Raises the error of a loading thread as
  /// soon as there is one, also for a later batch, and then in each call; and `timeout` if a batch is not loaded in
  /// time. If `append` throws, that is a `hocket::error` with epoch and position. For an exception of another type, its
  /// code is that of a `std::system_error`, `out_of_memory` for `std::bad_alloc`, and else `invalid_argument`; the
  /// exception is its nested one, for `std::rethrow_if_nested`.
  batch_type& next() {
    std::unique_lock lock(mutex_);
    if (released_ < delivered_)
      last_delivered().batch.samples.clear();  // may be all that keeps files of a cache in use
    released_ = delivered_;
    room_.notify_all();
    slot& wanted = slots_[static_cast<std::size_t>(delivered_ % slots_.size())];
    if (!wanted.is_ready && !failure_) wait_for(wanted, lock);
    if (failure_) std::rethrow_exception(failure_);
    wanted.is_ready = false;
    ++delivered_;
    cursor_ = sizes_.after(cursor_);
    return wanted.batch;
  }

  /// Returns where the batch after the last one begins: what a checkpoint must hold, after the step with that batch.
  data::cursor cursor() const noexcept { return cursor_; }

  /// The rest of the epoch of `cursor()`, for a range-based `for`, each batch as `next` returns it.
  class epoch_range {
   public:
    class iterator {
     public:
      batch_type& operator*() const noexcept { return *now_; }
      iterator& operator++() {
        now_ = from_->cursor().epoch == now_->at.epoch ? &from_->next() : nullptr;
        return *this;
      }
      bool operator==(std::default_sentinel_t) const noexcept { return now_ == nullptr; }

     private:
      friend class epoch_range;
      explicit iterator(loader& from) : from_(&from), now_(&from.next()) {}
      loader* from_;
      batch_type* now_;
    };

    iterator begin() const { return iterator(from_); }
    std::default_sentinel_t end() const noexcept { return {}; }

   private:
    friend class loader;
    explicit epoch_range(loader& from) : from_(from) {}
    loader& from_;
  };
  epoch_range epoch() & noexcept { return epoch_range(*this); }
  epoch_range epoch() && = delete;  // a loop over it would use a loader that is gone

  /// Returns how long each side has waited. May be called by any thread.
  loader_times times() const {
    const std::lock_guard lock(mutex_);
    loader_times result = times_;
    result.batches = delivered_;
    return result;
  }

 private:
  using clock = std::chrono::steady_clock;

  struct slot {
    batch_type batch;
    bool is_ready = false;
    bool is_loaded = false;  ///< and `loaded_` does not count it yet
  };

  /// Ends the threads, also if the constructor fails.
  struct thread_ender {
    loader& of;
    ~thread_ender() { of.end_threads(); }
  };

  static const loader_options& valid(const loader_options& options) {
    const char* const zero = options.prefetch == 0 ? "prefetch" : options.threads == 0 ? "threads" : nullptr;
    if (zero == nullptr) return options;
    raise(errc::invalid_argument, hocket::detail::concat({"the option ", zero, " of a loader must be at least 1"}),
          {.operation = "data::loader"});
  }

  void end_threads() {
    {
      const std::lock_guard lock(mutex_);
      must_end_ = true;
    }
    room_.notify_all();
    if constexpr (reports_loading<Source>) source_.loading_ends();
    for (std::thread& each : threads_) each.join();
  }

  slot& last_delivered() noexcept { return slots_[static_cast<std::size_t>((delivered_ - 1) % slots_.size())]; }

  void wait_for(const slot& wanted, std::unique_lock<std::mutex>& lock) {
    const auto begin = clock::now();
    const bool in_time = ready_.wait_for(lock, options_.timeout, [&] { return wanted.is_ready || failure_; });
    times_.training_waited += clock::now() - begin;
    if (in_time) return;
    raise(errc::timeout,
          hocket::detail::concat({"the batch at position ", cursor_.position, " of epoch ", cursor_.epoch,
                                  " was not loaded within ",
                                  std::chrono::duration_cast<std::chrono::milliseconds>(options_.timeout).count(),
                                  " ms: the source does not respond"}),
          {.operation = "data::loader",
           .rank = static_cast<int>(share_.rank()),
           .ranks = static_cast<int>(share_.ranks())});
  }

  /// What each thread does.
  void run() {
    platform::name_this_thread("hocket-loader");
    std::optional<epoch_of_thread> epoch;
    std::unique_lock lock(mutex_);
    for (;;) {
      const auto begin = clock::now();
      room_.wait(lock, [&] { return must_end_ || failure_ || begun_ - released_ < slots_.size(); });
      times_.loader_waited += clock::now() - begin;
      if (must_end_ || failure_) return;
      slot& to = slots_[static_cast<std::size_t>(begun_++ % slots_.size())];
      const data::cursor at = next_to_load_;
      next_to_load_ = sizes_.after(at);
      lock.unlock();
      const auto load_begin = clock::now();
      const std::exception_ptr cause = load_or_fail(at, to.batch, epoch);
      const auto took = clock::now() - load_begin;
      lock.lock();
      times_.loading += took;
      to.is_ready = to.is_loaded = !cause && !must_end_;
      end_batch(cause);
      if constexpr (reports_loading<Source>) {
        if (count_loaded()) report(lock);
      }
    }
  }

  void end_batch(const std::exception_ptr& cause) {
    if (cause && !failure_) failure_ = cause;
    ready_.notify_all();
    if (cause) room_.notify_all();  // the other threads end, too
  }

  /// Counts the batches before which all are loaded. Returns whether there are more of them than before.
  bool count_loaded() {
    const std::uint64_t before = loaded_;
    for (; loaded_ < begun_; ++loaded_) {
      slot& next = slots_[static_cast<std::size_t>(loaded_ % slots_.size())];
      if (!std::exchange(next.is_loaded, false)) break;
      loaded_until_ = sizes_.after(loaded_until_);
    }
    return loaded_ != before;
  }

  /// Reports to the source, by one thread at a time, so that it learns of no earlier cursor after a later one.
  void report(std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    std::exception_ptr cause;
    {
      const std::lock_guard one_at_a_time(reporting_);
      lock.lock();
      const data::cursor at = loaded_until_;
      const bool is_needed = !must_end_;
      lock.unlock();
      if (is_needed) cause = failure_of([&] { source_.loaded_until(at); });
    }
    lock.lock();
    if (cause) end_batch(cause);
  }

  template <class Body>
  static std::exception_ptr failure_of(Body body) {
#if HOCKET_HAS_EXCEPTIONS
    try {
      body();
    } catch (...) {
      return std::current_exception();
    }
#else
    body();
#endif
    return nullptr;
  }

  struct epoch_of_thread {
    std::uint64_t number;
    order_view order;
  };

  std::exception_ptr load_or_fail(const data::cursor& at, batch_type& to, std::optional<epoch_of_thread>& epoch) {
    std::uint64_t position = at.position;
#if HOCKET_HAS_EXCEPTIONS
    try {
      load(at, to, epoch, position);
    } catch (...) {
      return failure_of([&] { throw_named(at.epoch, position); });
    }
#else
    load(at, to, epoch, position);
#endif
    return nullptr;
  }

#if HOCKET_HAS_EXCEPTIONS
  /// Throws an error with epoch and position for the exception that is being handled, which it contains unless that is
  /// an error of hocket, too.
  [[noreturn]] static void throw_named(std::uint64_t epoch, std::uint64_t position) {
    const auto named = [&](failure cause) {
      cause.reason = hocket::detail::concat({"position ", position, " of epoch ", epoch, ": ", cause.reason});
      return error(std::move(cause));
    };
    try {
      throw;
    } catch (const error& cause) {
      throw named(cause.cause());
    } catch (const std::bad_alloc& cause) {
      std::throw_with_nested(named(make_failure(errc::out_of_memory, cause.what())));
    } catch (const std::system_error& cause) {
      std::throw_with_nested(named({cause.code(), cause.what(), {}}));
    } catch (const std::exception& cause) {
      std::throw_with_nested(named(make_failure(errc::invalid_argument, cause.what())));
    } catch (...) {
      std::throw_with_nested(
          named(make_failure(errc::invalid_argument, "the source has thrown an object that is no std::exception")));
    }
  }
#endif

  void load(const data::cursor& at, batch_type& to, std::optional<epoch_of_thread>& epoch, std::uint64_t& position) {
    if (!epoch || epoch->number != at.epoch) epoch.emplace(epoch_of_thread{at.epoch, order_.epoch(at.epoch)});
    to.at = at;
    to.whole = sizes_.at(at);
    to.own = share_.of(to.whole);
    to.samples.clear();
    for (position = to.own.begin; position < to.own.end && !must_end_.load(std::memory_order_relaxed); ++position)
      source_.append(epoch->order[position], to.samples);
  }

  const Order order_;
  const Source& source_;
  const share share_;
  const loader_options options_;
  const batch_sizes sizes_;

  mutable std::mutex mutex_;
  std::condition_variable ready_;  ///< a batch is ready, or a thread has failed
  std::condition_variable room_;   ///< a slot is free, or the threads must end
  std::vector<slot> slots_;        ///< batch i of this object is in slot i modulo their number
  data::cursor cursor_;            ///< of the consumer
  data::cursor next_to_load_;
  data::cursor loaded_until_;                                            ///< all before it is loaded
  std::uint64_t begun_ = 0, loaded_ = 0, delivered_ = 0, released_ = 0;  ///< numbers of batches
  std::mutex reporting_;                                                 ///< taken before `mutex_`
  std::exception_ptr failure_;                                           ///< the first one
  loader_times times_;
  std::atomic<bool> must_end_{false};
  std::vector<std::thread> threads_;
  thread_ender ender_;  // last, so that the threads end first
};

}  // namespace data
HOCKET_END_NAMESPACE
