// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reads the samples of remote shards through a cache, in an order of groups of shards, so that each shard is
/// downloaded once per host and epoch, also if the data set is larger than the cache.
///
/// All ranks of a host read the same groups in the same order. A shard is removed only after the slowest of them has
/// passed its group, and a rank that is two groups ahead waits for the slowest. So the cache must have room for two
/// groups, and each shard is downloaded once per epoch if
///
///   - all processes that use the folder are readers of the same shards in the same order, numbered from 0;
///   - a batch, over all ranks, has no more samples than any group; if a loader has several threads, as many batches as
///     it may load ahead, and one more.
///
/// No rank waits forever: the slowest needs shards of its group and the next one at most, for which there is room.
#pragma once

#include <hocket/core/checksum.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/platform/thread_name.hpp>
#include <hocket/core/platform/wait_limit.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/cache/file_cache.hpp>
#include <hocket/data/cache/reader_positions.hpp>
#include <hocket/data/order.hpp>
#include <hocket/data/share.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <concepts>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// A batch, and the shards that its samples may refer to.
template <class Batch>
class shard_batch : public Batch {
 public:
  void clear() {
    Batch::clear();
    in_use_.clear();
  }

  /// Keeps a shard until `clear`.
  void keep(const std::shared_ptr<const void>& shard) {
    if (std::find(in_use_.begin(), in_use_.end(), shard) == in_use_.end()) in_use_.push_back(shard);
  }

 private:
  std::vector<std::shared_ptr<const void>> in_use_;
};

/// Shards that can be read one by one. `open` makes a shard of its file, and may be called by several threads; a shard
/// has `append(sample, batch)`.
template <class Shards>
concept remote_shards = requires(Shards& all, opened_file file, typename Shards::shard_type::batch_type& to) {
  { all.files() } -> std::convertible_to<const std::vector<remote_file>&>;
  { all.sizes() } -> std::convertible_to<const std::vector<std::uint64_t>&>;
  { all.cache() } -> std::same_as<file_cache&>;
  { all.open(std::size_t{}, file) } -> std::same_as<std::shared_ptr<const typename Shards::shard_type>>;
  all.open(std::size_t{}, file)->append(std::uint64_t{}, to);
};

/// The samples of remote shards, as a source of a loader; see the top of this file. The shards must outlive it. May be
/// used by several threads. A program that has no loader calls `loaded_until` instead.
///
/// From the first call of `loaded_until` on, a thread downloads the shards of the reader's group and of the next one.
/// Its errors are those of `append`, which tries again.
template <remote_shards Shards>
class group_reader {
 public:
  using batch_type = shard_batch<typename Shards::shard_type::batch_type>;

  /// `of` must be made of `listed_shards{shards.sizes(), shards_per_group}`, and be the same for all readers of the
  /// host. Raises `invalid_argument` if it is of other shards, if two groups are larger than the bound of the cache, or
  /// if `self` is no reader, or one that exists already. Downloads nothing.
  group_reader(Shards& shards, order of, const host_reader& self = {})
      : shards_(shards), order_(std::move(of)), self_(valid(self)), ends_(ends_of(shards.sizes())),
        names_(names_of(shards.files())), groups_(order_.epoch(0).groups()),
        positions_(shards.cache().files(), hash_of(names_, order_.epoch(0)), self) {
    shards_.cache().require_room(shards_.files(), 2 * require_same_shards());
    if (failure cause = positions_.start(limit())) raise(std::move(cause));
  }
  group_reader(const group_reader&) = delete;
  group_reader& operator=(const group_reader&) = delete;
  /// Waits for the piece of a shard that is being downloaded, and at most 1 s for a process that has the folder locked.
  ~group_reader() {
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = is_destroyed_ = true;
    }
    changed_.notify_all();
    if (fetcher_.joinable()) fetcher_.join();
  }

  /// Returns the number of samples.
  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  /// Adds a sample to a batch. Waits until its group is the slowest reader's or the next one, and for its shard to be
  /// downloaded. Raises as `file_cache::open`, `invalid_argument` if there is no such sample, and `timeout` if the
  /// slowest reader makes no progress. Adds nothing once `loading_ends` was called.
  void append(std::uint64_t sample, batch_type& to) const {
    if (sample >= size()) refuse(hocket::detail::concat({"sample ", sample, " is asked for, and there are ", size()}));
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), sample);
    const auto shard = static_cast<std::size_t>(end - ends_.begin());
    const shard_pointer opened = open(shard);
    if (!opened) return;
    opened->append(sample - (shard == 0 ? 0 : ends_[shard - 1]), to);
    to.keep(opened);
  }

  /// Informs the readers of the host that this one needs no sample before a position any more. A loader calls it.
  void loaded_until(const cursor& at) const {
    if (at.position >= size()) return;
    std::uint64_t turn = 0;
    {
      const std::lock_guard lock(mutex_);
      has_ended_ = false;
      has_changed_ = true;
      changed_.notify_all();
      if (!fetcher_.joinable()) fetcher_ = std::thread([this] { fetch_ahead(); });
      turn = at.epoch * groups_ + order_of(at.epoch).group_at(at.position);
      if (turn == positions_.own_turn()) return;
    }
    if (failure cause = move_to(turn, limit())) raise(std::move(cause));
  }

  /// Informs the readers of the host that this one needs nothing until the next call of `loaded_until`, and ends waits
  /// of `append`. A loader calls it when it is destroyed.
  void loading_ends() const {
    has_ended_ = true;
    // If that fails, the others wait until they find this reader dead.
    static_cast<void>(move_to(detail::reader_positions::ended, deadline::after(std::chrono::seconds(1))));
  }

 private:
  using shard_pointer = std::shared_ptr<const typename Shards::shard_type>;
  using slowest_reader = detail::reader_positions::slowest;

  [[noreturn]] static void refuse(std::string reason) {
    raise(errc::invalid_argument, std::move(reason), {.operation = "data::group_reader"});
  }
  static const host_reader& valid(const host_reader& self) {
    if (0 <= self.reader && self.reader < self.readers) return self;
    refuse(hocket::detail::concat({"reader ", self.reader, " is not one of ", self.readers, " readers of a host"}));
  }
  static std::vector<std::uint64_t> ends_of(const std::vector<std::uint64_t>& sizes) {
    std::vector<std::uint64_t> result;
    for (const std::uint64_t each : sizes) result.push_back((result.empty() ? 0 : result.back()) + each);
    return result;
  }
  static std::vector<std::string> names_of(const std::vector<remote_file>& files) {
    std::vector<std::string> result;
    for (const remote_file& each : files) result.push_back(cached_name(each));
    return result;
  }
  /// Returns a hash of the files in the order of the first epoch: readers of another order are others.
  static std::uint64_t hash_of(const std::vector<std::string>& names, const epoch_order& epoch) {
    std::string all;
    for (std::uint64_t group = 0; group < epoch.groups(); ++group) {
      all += "group\n";
      for (const std::uint64_t shard : epoch.shards_of(group))
        if (shard < names.size()) (all += names[static_cast<std::size_t>(shard)]) += '\n';
    }
    return hocket::detail::checksum(std::as_bytes(std::span(all)));
  }

  /// Checks that the order is of these shards, and returns the number of shards of a group.
  std::uint64_t require_same_shards() const {
    const epoch_order epoch = order_.epoch(0);
    const std::uint64_t in_group = groups_ == 0 ? 0 : epoch.shards_of(0).size();
    const std::uint64_t count = groups_ == 0 ? 0 : (groups_ - 1) * in_group + epoch.shards_of(groups_ - 1).size();
    const bool has_same_samples = order_.size() == size();
    if (has_same_samples && count == ends_.size()) return in_group;
    refuse(hocket::detail::concat({"the order is of ", has_same_samples ? count : order_.size(),
                                   has_same_samples ? " shards" : " samples", ", and there are ",
                                   has_same_samples ? ends_.size() : size(),
                                   ": make it of listed_shards with the sizes of these shards"}));
  }

  deadline limit() const { return deadline::after(shards_.cache().timeout()); }

  /// Returns the order of an epoch; keeps that of three.
  const epoch_order& order_of(std::uint64_t epoch) const {
    const auto found = orders_.find(epoch);
    if (found != orders_.end()) return found->second;
    while (orders_.size() > 2) orders_.erase(orders_.begin()->first < epoch ? orders_.begin() : --orders_.end());
    return orders_.emplace(epoch, order_.epoch(epoch)).first->second;
  }

  /// Returns the shards of turns `begin` to `last`, sorted.
  std::vector<std::uint64_t> shards_of(std::uint64_t begin, std::uint64_t last) const {
    std::vector<std::uint64_t> result;
    for (std::uint64_t turn = begin; turn <= last && turn != detail::reader_positions::ended; ++turn) {
      const auto shards = order_of(turn / groups_).shards_of(turn % groups_);
      result.insert(result.end(), shards.begin(), shards.end());
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  /// Returns the shards that this reader may have open: those of its turn and the next one, unless they are too far
  /// ahead of the slowest reader. The same shard in another turn does not count: there would be no room for it.
  std::vector<std::uint64_t> admitted(const slowest_reader& now, std::uint64_t own) const {
    return now.has_all && own != detail::reader_positions::ended ? shards_of(own, now.turn + 1)
                                                                 : std::vector<std::uint64_t>();
  }

  /// The lock of the folder comes before that of this object, here as where files are removed.
  failure move_to(std::uint64_t turn, const deadline& until) const {
    detail::cache_folder::guard locked;
    const auto* const cancelled = turn == detail::reader_positions::ended ? nullptr : &has_ended_;
    if (failure cause = shards_.cache().files().lock(until, locked, cancelled)) return cause;
    const std::lock_guard lock(mutex_);
    if (failure cause = positions_.move_to(turn, locked)) return cause;
    slowest_reader now;
    if (failure cause = positions_.find_slowest(now, locked)) return cause;
    const auto kept = admitted(now, turn);
    std::erase_if(opened_, [&](const auto& each) { return !std::binary_search(kept.begin(), kept.end(), each.first); });
    fetched_.clear();
    has_changed_ = true;
    changed_.notify_all();
    return {};
  }

  /// Returns a shard; null if the loading has ended.
  shard_pointer open(std::size_t shard) const {
    shard_pointer opened;
    if (!wait_for_turn(shard, opened) || opened) return opened;
    opened_file file;
    failure cause = shards_.cache().try_open(shards_.files()[shard], rules(true), file);
    if (has_ended_) return nullptr;
    if (cause) raise(std::move(cause));
    opened = shards_.open(shard, std::move(file));
    const std::lock_guard lock(mutex_);
    return has_ended_ ? opened : opened_.emplace(shard, std::move(opened)).first->second;
  }

  open_rules rules(bool waits) const {
    return {[this](const auto& locked, needed_names& needed) { return find_needed(locked, needed); }, &has_ended_,
            waits};
  }

  /// What the thread does.
  void fetch_ahead() const {
    platform::name_this_thread("hocket-fetch");
    std::unique_lock lock(mutex_);
    while (!is_destroyed_) {
      has_changed_ = false;
      lock.unlock();
      const auto pause = has_ended_ ? idle : fetch_or_pause();
      lock.lock();
      changed_.wait_for(lock, pause, [this] { return has_changed_ || is_destroyed_; });
    }
  }

  /// Does what `fetch_missing` does. An exception, such as one of a source of the program, must not end the process: the
  /// call of `append` that needs the shard tries again, and raises it.
  std::chrono::nanoseconds fetch_or_pause() const {
#if HOCKET_HAS_EXCEPTIONS
    try {
      return fetch_missing();
    } catch (...) {
      return after_failure;
    }
#else
    return fetch_missing();
#endif
  }

  /// Downloads what is missing and what no other reader downloads. Returns how long to wait until the next attempt.
  std::chrono::nanoseconds fetch_missing() const {
    std::vector<std::uint64_t> missing;
    bool has_all = false;
    if (find_missing(missing, has_all)) return after_failure;
    for (const std::uint64_t shard : missing) {
      opened_file file;
      const failure cause =
          shards_.cache().try_open(shards_.files()[static_cast<std::size_t>(shard)], rules(false), file);
      if (has_ended_) return idle;
      if (cause && cause.code != errc::aborted) return after_failure;
      const std::lock_guard lock(mutex_);
      if (!cause) fetched_.insert(shard);
      has_all &= !cause;
    }
    return has_all ? idle : busy;
  }

  /// Lists the shards that are admitted and were not fetched since the last turn, those of the own turn first. Each
  /// reader begins with another one.
  failure find_missing(std::vector<std::uint64_t>& result, bool& has_all) const {
    detail::cache_folder::guard locked;
    if (failure cause = shards_.cache().files().lock(limit(), locked, &has_ended_)) return cause;
    const std::lock_guard lock(mutex_);
    slowest_reader now;
    if (failure cause = positions_.find_slowest(now, locked)) return cause;
    const std::uint64_t own = positions_.own_turn();
    if (own == detail::reader_positions::ended) return {};
    for (const std::uint64_t turn : {own, own + 1}) {
      auto shards = now.has_all && turn <= now.turn + 1 ? shards_of(turn, turn) : std::vector<std::uint64_t>();
      if (shards.empty()) return {};
      const auto first = static_cast<std::size_t>(self_.reader) % shards.size();
      std::rotate(shards.begin(), shards.begin() + static_cast<std::ptrdiff_t>(first), shards.end());
      std::erase_if(shards, [&](std::uint64_t each) { return fetched_.count(each) != 0; });
      result.insert(result.end(), shards.begin(), shards.end());
    }
    has_all = true;
    return {};
  }

  /// Waits until the shard may be opened, or is open, which sets `opened`. Returns false if the loading has ended.
  bool wait_for_turn(std::size_t shard, shard_pointer& opened) const {
    deadline until = limit();
    slowest_reader before, now;
    for (detail::polling_pause pause; !has_ended_; pause()) {
      if (find_opened(shard, opened)) return true;
      bool is_admitted = false;
      if (failure cause = find_admitted(shard, now, is_admitted)) {
        if (has_ended_) return false;
        raise(std::move(cause));
      }
      if (is_admitted) return true;
      if (now.turn != before.turn || now.has_all != before.has_all) until = limit();
      if (until.passed()) raise(late(now));
      before = now;
    }
    return false;
  }

  bool find_opened(std::size_t shard, shard_pointer& opened) const {
    const std::lock_guard lock(mutex_);
    const auto found = opened_.find(shard);
    if (found != opened_.end()) opened = found->second;
    return opened != nullptr;
  }

  failure find_admitted(std::size_t shard, slowest_reader& now, bool& is_admitted) const {
    detail::cache_folder::guard locked;
    if (failure cause = shards_.cache().files().lock(limit(), locked, &has_ended_)) return cause;
    const std::lock_guard lock(mutex_);
    if (failure cause = positions_.find_slowest(now, locked)) return cause;
    const auto shards = admitted(now, positions_.own_turn());
    is_admitted = std::binary_search(shards.begin(), shards.end(), std::uint64_t{shard});
    return {};
  }

  /// Finds the files that a reader may still need.
  failure find_needed(const detail::cache_folder::guard& locked, needed_names& needed) const {
    const std::lock_guard lock(mutex_);
    slowest_reader now;
    if (failure cause = positions_.find_slowest(now, locked)) return cause;
    for (const std::uint64_t each : shards_of(now.turn, now.turn + 1))
      needed.push_back(names_[static_cast<std::size_t>(each)]);
    std::sort(needed.begin(), needed.end());
    return {};
  }

  failure late(const slowest_reader& now) const {
    const std::string waited = platform::seconds_text(shards_.cache().timeout());
    const std::string who =
        hocket::detail::concat({"reader ", now.reader, " of ", self_.readers, " of '", shards_.cache().folder(), "'"});
    if (!now.has_all)
      return make_failure(errc::timeout, hocket::detail::concat({who, " has not started within ", waited}));
    const std::string where = hocket::detail::concat({"group ", now.turn % groups_, " of epoch ", now.turn / groups_});
    if (now.reader == self_.reader) {
      return make_failure(errc::timeout,
                          hocket::detail::concat(
                              {"a shard is asked for that is neither in ", where, " nor in the next one, for ", waited,
                               ": a group must not have fewer samples than a batch, and a program without a loader "
                               "must call loaded_until"}));
    }
    return make_failure(errc::timeout, hocket::detail::concat({who, " has been in ", where, " for ", waited,
                                                               ", and reader ", self_.reader,
                                                               " can't be two groups ahead: it makes no progress, or a "
                                                               "group has fewer samples than a batch"}));
  }

  static constexpr std::chrono::nanoseconds busy = std::chrono::milliseconds(20),  ///< pauses of the thread
      after_failure = std::chrono::seconds(1), idle = std::chrono::minutes(1);

  Shards& shards_;
  const order order_;
  const host_reader self_;
  const std::vector<std::uint64_t> ends_;
  const std::vector<std::string> names_;
  const std::uint64_t groups_;
  mutable std::atomic<bool> has_ended_{false};
  mutable std::mutex mutex_;
  mutable detail::reader_positions positions_;
  mutable std::map<std::uint64_t, epoch_order> orders_;
  mutable std::map<std::size_t, shard_pointer> opened_;
  mutable std::set<std::uint64_t> fetched_;  ///< since the last turn
  mutable std::condition_variable changed_;  ///< the turn, or the end
  mutable bool has_changed_ = false;         ///< since the thread has looked
  bool is_destroyed_ = false;
  mutable std::thread fetcher_;
};

}  // namespace data
HOCKET_END_NAMESPACE
