// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The order in which the samples of a data set are used: each once per epoch, in an order that depends on seed and
/// epoch alone. It is computed, not stored, so that a training continues at any position at once, on any number of
/// ranks.
///
/// Where samples are in shards that are fetched one by one, the order has two levels: the shards are permuted, and
/// consecutive ones form groups, within which the samples are permuted. A host then holds two groups at a time, that in
/// use and the next, however large the data set is. Local files are one group: all samples are permuted.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/data/permutation.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace data {
namespace detail {

/// Consecutive ranges of samples: of `each` samples, except that range `odd` has `odd_size`; or of listed sizes.
class sample_ranges {
 public:
  sample_ranges(std::uint64_t count, std::uint64_t each, std::uint64_t odd, std::uint64_t odd_size) noexcept
      : count_(count), each_(each), odd_(odd), odd_size_(odd_size) {}
  explicit sample_ranges(std::vector<std::uint64_t> begins) : count_(begins.size() - 1) {
    begins_ = std::make_shared<const std::vector<std::uint64_t>>(std::move(begins));
  }

  std::uint64_t count() const noexcept { return count_; }

  std::uint64_t begin_of(std::uint64_t range) const noexcept {
    if (begins_) return (*begins_)[static_cast<std::size_t>(range)];
    return range * each_ - (range > odd_ ? each_ - odd_size_ : 0);
  }

  /// Returns the range that has `sample`.
  std::uint64_t range_of(std::uint64_t sample) const noexcept {
    if (begins_) {
      const auto after = std::upper_bound(begins_->begin(), begins_->end(), sample);
      return static_cast<std::uint64_t>(after - begins_->begin()) - 1;
    }
    const std::uint64_t before = odd_ * each_;
    if (sample < before) return sample / each_;
    return sample < before + odd_size_ ? odd_ : (sample + each_ - odd_size_) / each_;
  }

  /// Returns these ranges in the order of `order`.
  sample_ranges permuted(const permutation& order) const {
    if (!begins_) return {count_, each_, count_ == 0 ? 0 : order.index_of(odd_), odd_size_};
    std::vector<std::uint64_t> begins{0};
    begins.reserve(begins_->size());
    for (std::uint64_t turn = 0; turn < count_; ++turn) {
      const std::uint64_t shard = order[turn];
      begins.push_back(begins.back() + begin_of(shard + 1) - begin_of(shard));
    }
    return sample_ranges(std::move(begins));
  }

 private:
  std::uint64_t count_, each_ = 0, odd_ = 0, odd_size_ = 0;
  std::shared_ptr<const std::vector<std::uint64_t>> begins_;  ///< one more than ranges; null: equal sizes
};

}  // namespace detail

/// Samples in shards of `samples_per_shard` samples, of which the last may have fewer.
struct equal_shards {
  std::uint64_t samples = 0;
  std::uint64_t samples_per_shard = 1;
  std::uint64_t shards_per_group = 1;
};

/// Samples in shards of different sizes, which follow one another in the numbering of samples.
struct listed_shards {
  std::vector<std::uint64_t> samples;  ///< of each shard
  std::uint64_t shards_per_group = 1;
};

/// The order of one epoch. A value; may be used by several threads.
class epoch_order {
 public:
  std::uint64_t size() const noexcept { return samples_; }

  /// Returns the number of the sample at `position`, which must be less than `size()`.
  std::uint64_t operator[](std::uint64_t position) const {
    const std::uint64_t group = places_.range_of(position) / shards_per_group_;
    const std::uint64_t begin = places_.begin_of(group * shards_per_group_);
    const std::uint64_t end = places_.begin_of(end_of_group(group));
    const permutation within(end - begin, detail::derived_key(key_, group + 1));
    const std::uint64_t placed = begin + within[position - begin];
    const std::uint64_t turn = places_.range_of(placed);
    return shards_.begin_of(shard_order_[turn]) + placed - places_.begin_of(turn);
  }

  /// Returns the number of groups; all samples of a group come before those of the next.
  std::uint64_t groups() const noexcept {
    return places_.count() / shards_per_group_ + (places_.count() % shards_per_group_ != 0 ? 1 : 0);
  }

  /// Returns the group of the sample at `position`.
  std::uint64_t group_at(std::uint64_t position) const noexcept {
    return places_.range_of(position) / shards_per_group_;
  }

  /// Returns the shards of a group, in any order: what a cache must hold while the samples of the group are used.
  std::vector<std::uint64_t> shards_of(std::uint64_t group) const {
    std::vector<std::uint64_t> result;
    for (std::uint64_t turn = group * shards_per_group_; turn < end_of_group(group); ++turn)
      result.push_back(shard_order_[turn]);
    return result;
  }

 private:
  friend class order;
  epoch_order(const detail::sample_ranges& shards, std::uint64_t samples, std::uint64_t shards_per_group,
              std::uint64_t key)
      : shards_(shards), samples_(samples), shards_per_group_(shards_per_group), key_(key),
        shard_order_(shards.count(), detail::derived_key(key, 0)), places_(shards.permuted(shard_order_)) {}

  std::uint64_t end_of_group(std::uint64_t group) const noexcept {
    const std::uint64_t begin = group * shards_per_group_, rest = places_.count() - begin;
    return begin + std::min(rest, shards_per_group_);
  }

  detail::sample_ranges shards_;
  std::uint64_t samples_, shards_per_group_, key_;
  permutation shard_order_;
  detail::sample_ranges places_;  ///< the shards in the order of this epoch
};

/// The order of samples in all epochs. All ranks must pass equal arguments. A value; may be used by several threads.
///
/// Cost: an element costs about 100 ns, and nothing is stored; with shards of different sizes, `epoch` takes time and
/// memory proportional to the number of shards, and an element time proportional to its logarithm.
class order {
 public:
  /// Permutes all samples. Raises `invalid_argument`, as the others, if there are more than `permutation::most`.
  order(std::uint64_t samples, std::uint64_t seed)
      : order(equal_shards{samples, std::max<std::uint64_t>(samples, 1), 1}, seed) {}

  /// Permutes shards, and samples within groups of shards. Raises `invalid_argument` if a size is 0.
  order(const equal_shards& shards, std::uint64_t seed)
      : shards_(ranges_of(shards)), samples_(shards.samples), shards_per_group_(shards.shards_per_group), seed_(seed) {
    require_valid();
  }
  order(const listed_shards& shards, std::uint64_t seed)
      : shards_(begins_of(shards)), samples_(shards_.begin_of(shards_.count())),
        shards_per_group_(shards.shards_per_group), seed_(seed) {
    require_valid();
  }

  /// Returns the number of samples, that is, of positions of an epoch.
  std::uint64_t size() const noexcept { return samples_; }

  /// Returns the order of one epoch.
  epoch_order epoch(std::uint64_t number) const {
    return {shards_, samples_, shards_per_group_, detail::derived_key(seed_, number)};
  }

 private:
  [[noreturn]] static void refuse(std::string reason) {
    raise(errc::invalid_argument, std::move(reason), {.operation = "data::order"});
  }

  void require_valid() const {
    if (shards_per_group_ == 0) refuse("a group must have at least one shard");
    if (samples_ > permutation::most)
      refuse(hocket::detail::concat({"an order has at most 2^62 samples, and ", samples_, " are given"}));
  }

  static detail::sample_ranges ranges_of(const equal_shards& shards) {
    if (shards.samples_per_shard == 0) refuse("a shard must have at least one sample");
    const std::uint64_t whole = shards.samples / shards.samples_per_shard,
                        rest = shards.samples % shards.samples_per_shard;
    if (rest == 0) return {whole, shards.samples_per_shard, whole == 0 ? 0 : whole - 1, shards.samples_per_shard};
    return {whole + 1, shards.samples_per_shard, whole, rest};
  }

  static std::vector<std::uint64_t> begins_of(const listed_shards& shards) {
    std::vector<std::uint64_t> begins{0};
    begins.reserve(shards.samples.size() + 1);
    for (const std::uint64_t each : shards.samples) {
      if (each > permutation::most - begins.back())
        refuse("an order has at most 2^62 samples, and the shards have more");
      begins.push_back(begins.back() + each);
    }
    return begins;
  }

  detail::sample_ranges shards_;
  std::uint64_t samples_, shards_per_group_, seed_;
};

}  // namespace data
HOCKET_END_NAMESPACE
