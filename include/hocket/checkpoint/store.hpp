// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Saves and loads the state of a training, whole or not at all, on any mesh. A checkpoint that a crash interrupts is
/// none; one that is damaged is refused, and the one before is loaded.
///
/// @code
/// hocket::checkpoint::store saved("checkpoints", comm);
/// if (const auto found = saved.load_newest(now)) step = found->at.step;
/// for (;; ++step) {
///   train();
///   if (step % 100 == 0) saved.save(step, now);
/// }
/// @endcode
///
/// Files: see checkpoint/folder.hpp and checkpoint/manifest.hpp.
#pragma once

#include <hocket/checkpoint/folder.hpp>
#include <hocket/checkpoint/loader.hpp>
#include <hocket/checkpoint/outcome.hpp>
#include <hocket/checkpoint/rank_group.hpp>
#include <hocket/checkpoint/saver.hpp>
#include <hocket/checkpoint/shard_writer.hpp>
#include <hocket/checkpoint/state.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/file_system.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/group/split.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace checkpoint {

struct store_options {
  retention keep{};                         ///< which checkpoints remain when a new one is valid
  std::uint64_t most_bytes_per_second = 0;  ///< limit of each rank's `save_async`; 0: none
  std::chrono::nanoseconds timeout =
      std::chrono::minutes(30);            ///< how long ranks wait for the slowest to write or read
  platform::file_system* files = nullptr;  ///< makes the system calls, for tests; null: the real ones
};

namespace detail {

/// What a rank writes of a state, copied, so that the program can continue.
class snapshot {
 public:
  /// Keeps the memory of the last snapshot.
  void take(const state& what, const assignment& mine) {
    text_ = what.text;
    held_ = what.parts();
    parts_ = source_parts(held_, mine.ranges);
    std::size_t bytes = 0;
    for (const source_part& each : parts_) bytes += each.bytes.size();
    if (memory_.size() < bytes) memory_ = std::vector<std::byte>(bytes);
    std::byte* to = memory_.data();
    for (source_part& each : parts_) {
      if (!each.bytes.empty()) std::memcpy(to, each.bytes.data(), each.bytes.size());
      each.bytes = {to, each.bytes.size()};
      to += each.bytes.size();
    }
  }

  const std::map<std::string, std::string>& text() const noexcept { return text_; }
  const std::vector<source_part>& parts() const noexcept { return parts_; }

 private:
  std::map<std::string, std::string> text_;
  std::vector<state_part> held_;  ///< to which the parts refer
  std::vector<source_part> parts_;
  std::vector<std::byte> memory_;
};

}  // namespace detail

/// **Collective:** the constructor and all functions, with equal arguments besides the memory of the state. **Errors**
/// are the same on all ranks: `invalid_argument` if the state is not one (see `state`); `system` if a call of the
/// system fails, with the file and the offset; `mismatch` if a checkpoint has other tensors than the state; `corrupted`
/// if all checkpoints are damaged; and those of communication. A save that fails leaves the checkpoints before it.
/// **Threads.** One thread of a rank uses the object at a time; `save_async` starts one more, which ends with the save.
class store {
 public:
  /// @param path the folder of all checkpoints, which all hosts share; its parent must exist
  template <class Domain>
  store(std::string path, const communicator<Domain>& comm, const store_options& options = {})
      : options_(options), files_(options.files != nullptr ? *options.files : own_files_),
        folder_(files_, std::move(path)), ranks_(group_of(comm, options)),
        saver_(files_, folder_, *ranks_, options.keep), loader_(files_, folder_, *ranks_) {}
  store(const store&) = delete;
  store& operator=(const store&) = delete;
  /// Waits for a save that is in progress; its failure is lost. Call `wait` before to get it.
  ~store() = default;

  /// Makes the folder and locks it, as the first save does otherwise: so that a folder in which no save would succeed,
  /// because there is no permission or another process saves there, is an error before the work to be saved.
  void lock() {
    wait();
    if (failure cause = saver_.lock()) fail("checkpoint lock", std::move(cause));
  }

  /// Saves `what` as the checkpoint of `step`. When it returns, the checkpoint survives a loss of power. Cost: each
  /// element is written once, by one of the ranks that hold it.
  position save(std::uint64_t step, const state& what) {
    wait();
    detail::assignment mine;
    failure cause = saver_.begin(step, what, mine);
    if (!cause) {
      std::vector<source_part> parts;
      const failure before = detail::outcome_of([&] {
        parts = source_parts(what.parts(), mine.ranges);
        return failure();
      });
      cause = saver_.write(*ranks_, mine.at, parts, what.text, write_rate(), before);
    }
    if (cause) fail("checkpoint save", std::move(cause));
    return mine.at;
  }

  /// Copies what this rank writes, and returns while a thread writes it, at most `most_bytes_per_second`. The memory of
  /// the state may change at once. Waits for the save before, if that is in progress, and raises its failure. Cost: a
  /// copy of the rank's share, which stays allocated for the next save.
  position save_async(std::uint64_t step, const state& what) {
    wait();
    if (!background_ranks_) background_ranks_ = ranks_->copy();
    detail::assignment mine;
    if (failure cause = saver_.begin(step, what, mine)) fail("checkpoint save", std::move(cause));
    failure before = detail::outcome_of([&] {
      snapshot_.take(what, mine);
      return failure();
    });
    is_done_.store(false, std::memory_order_relaxed);
    const auto write = [this, at = mine.at, before = std::move(before)] {
      failure cause = detail::outcome_of([&] {
        return saver_.write(*background_ranks_, at, snapshot_.parts(), snapshot_.text(),
                            write_rate(options_.most_bytes_per_second), before);
      });
      is_done_.store(true, std::memory_order_release);
      return cause;
    };
    writer_ = std::async(std::launch::async | std::launch::deferred, write);
    // Where no thread can be started, this one writes, because the other ranks wait for it.
    if (writer_.wait_for(std::chrono::seconds(0)) == std::future_status::deferred) writer_.wait();
    return mine.at;
  }

  /// Returns whether the save that `save_async` has started last is complete on this rank. Not collective.
  bool is_done() const noexcept { return is_done_.load(std::memory_order_acquire); }

  /// Waits until the save that `save_async` has started is complete, and raises its failure.
  void wait() {
    if (!writer_.valid()) return;
    if (failure cause = writer_.get()) fail("checkpoint save", std::move(cause));
  }

  /// Returns on rank 0, after a save, why checkpoints that are no longer kept, or files of saves that have failed,
  /// remain: each with the file and the reason; nothing on other ranks. A save does not fail for that. Waits for the
  /// save and the removal that are in progress, and raises the failure of that save. Not collective.
  std::vector<std::string> not_removed() {
    wait();
    return saver_.not_removed();
  }

  /// Loads the checkpoint of `at` into `into`. After an error, its elements are undefined.
  void load(const position& at, state& into) {
    wait();
    if (failure cause = loader_.load(at, into)) fail("checkpoint load", std::move(cause));
  }

  /// Loads the newest checkpoint that is not damaged into `into`; returns nothing if there is no checkpoint. The state
  /// may have fewer tensors than the checkpoint. After an error, its elements are undefined. Cost: on each host, each
  /// byte that a rank needs is read once.
  std::optional<loaded_checkpoint> load_newest(state& into) {
    wait();
    std::optional<loaded_checkpoint> found;
    if (failure cause = loader_.load_newest(into, found)) fail("checkpoint load", std::move(cause));
    return found;
  }

 private:
  template <class Domain>
  static std::unique_ptr<detail::rank_group> group_of(const communicator<Domain>& comm, const store_options& options) {
    communicator<Domain> own = hocket::split(comm, color{0}, key{comm.rank()});
    own.set_timeout(options.timeout);
    return std::make_unique<detail::rank_group_over<Domain>>(std::move(own));
  }

  [[noreturn]] void fail(const char* operation, failure cause) {
    cause.context.operation = operation;
    cause.context.rank = ranks_->rank();
    cause.context.ranks = ranks_->size();
    raise(std::move(cause));
  }

  const store_options options_;
  platform::file_system own_files_;
  platform::file_system& files_;
  folder folder_;
  std::unique_ptr<detail::rank_group> ranks_;
  detail::saver saver_;
  detail::loader loader_;
  std::unique_ptr<detail::rank_group> background_ranks_;
  detail::snapshot snapshot_;
  std::atomic<bool> is_done_{true};
  std::future<failure> writer_;  ///< last member, so that the save ends before what it uses
};

}  // namespace checkpoint
HOCKET_END_NAMESPACE
