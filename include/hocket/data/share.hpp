// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which samples of the order belong to which batch and rank. A batch is a range of positions of the order, of a size
/// that the training states in samples; ranks divide each batch, unevenly if they must. So all numbers of ranks use the
/// same batches, and a training continues at any position on any number of ranks.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <string>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace data {

/// How far a training has come: the position in the order of an epoch at which the next batch begins. Belongs into each
/// checkpoint: `now.add("data.epoch", at.epoch); now.add("data.position", at.position);`.
struct cursor {
  std::uint64_t epoch = 0;
  std::uint64_t position = 0;

  auto operator<=>(const cursor&) const = default;
};

/// Positions `begin` to `end`, excluded, of the order of an epoch.
struct positions {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  std::uint64_t size() const noexcept { return end - begin; }
  bool operator==(const positions&) const = default;
};

/// The part of each batch that belongs to one of `ranks` ranks. Parts are consecutive, in the order of ranks; their
/// sizes differ by one at most. A rank gets nothing of a batch that has fewer samples than there are ranks; it must
/// still take part in the collectives of the step.
class share {
 public:
  /// Raises `invalid_argument` if `rank` is not one of 0 to `ranks - 1`.
  share(int rank, int ranks) : rank_(static_cast<std::uint64_t>(rank)), ranks_(static_cast<std::uint64_t>(ranks)) {
    if (0 <= rank && rank < ranks) return;
    raise(errc::invalid_argument, hocket::detail::concat({"rank ", rank, " is not one of ", ranks, " ranks"}),
          {.operation = "data::share"});
  }
  /// The part of a member of a communicator.
  template <class Communicator>
    requires requires(const Communicator& comm) {
      { comm.rank() };
      { comm.size() };
    }
  explicit share(const Communicator& comm) : share(static_cast<int>(comm.rank()), static_cast<int>(comm.size())) {}

  std::uint64_t rank() const noexcept { return rank_; }
  std::uint64_t ranks() const noexcept { return ranks_; }

  /// Returns this rank's part of a batch.
  positions of(const positions& batch) const noexcept {
    const std::uint64_t each = batch.size() / ranks_, larger = batch.size() % ranks_;
    const std::uint64_t begin = batch.begin + each * rank_ + std::min(rank_, larger);
    return {begin, begin + each + (rank_ < larger ? 1 : 0)};
  }

 private:
  std::uint64_t rank_, ranks_;
};

/// Divides epochs into batches; the last batch of an epoch has the samples that are left.
class batch_sizes {
 public:
  /// Epochs of `samples_of_epoch` positions, and batches of `samples_of_batch`, over all ranks. Raises
  /// `invalid_argument` if one of them is 0.
  batch_sizes(std::uint64_t samples_of_epoch, std::uint64_t samples_of_batch)
      : epoch_(samples_of_epoch), batch_(samples_of_batch) {
    if (epoch_ == 0) refuse("the data has no samples");
    if (batch_ == 0) refuse("a batch must have at least one sample");
  }

  std::uint64_t samples_of_epoch() const noexcept { return epoch_; }

  /// Returns the cursor with a position of its epoch: the end of an epoch is the begin of the next. Raises
  /// `invalid_argument` if it is beyond the end.
  cursor normal(const cursor& at) const {
    if (at.position < epoch_) return at;
    if (at.position == epoch_) return {at.epoch + 1, 0};
    refuse(hocket::detail::concat(
        {"the cursor is at position ", at.position, " of an epoch of ", epoch_, " samples: it belongs to other data"}));
  }

  /// Returns the batch that begins at a cursor.
  positions at(const cursor& where) const {
    const std::uint64_t begin = normal(where).position;
    return {begin, begin + std::min(batch_, epoch_ - begin)};
  }

  /// Returns the cursor of the batch after that.
  cursor after(const cursor& where) const { return normal({normal(where).epoch, at(where).end}); }

 private:
  [[noreturn]] static void refuse(std::string reason) {
    raise(errc::invalid_argument, std::move(reason), {.operation = "data::batch_sizes"});
  }

  std::uint64_t epoch_, batch_;
};

}  // namespace data
HOCKET_END_NAMESPACE
