// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The part of a layout's flat memory that one rank stores: everything, or its piece of each bucket, contiguously.
/// Gradients, parameters and states are stored in this way; only this file computes the position of a bucket's part.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <cstddef>
#include <span>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

class layout_share {
 public:
  layout_share() = default;
  /// @param in_pieces whether each of `ranks` ranks stores its piece of each bucket, instead of everything
  layout_share(const parameter_layout& layout, bool in_pieces, int rank, int ranks)
      : lengths_(static_cast<std::size_t>(ranks)) {
    for (std::size_t b = 0; b < layout.buckets(); ++b) {
      begins_.push_back(elements_);
      ranges_.push_back(in_pieces ? layout.piece(b, rank, ranks) : layout.bucket(b));
      elements_ += ranges_.back().size;
    }
  }

  /// Number of stored elements of all buckets.
  std::size_t elements() const noexcept { return elements_; }
  /// Stored range of bucket `b`, relative to the beginning of the layout's flat memory.
  const element_range& range(std::size_t b) const noexcept { return ranges_[b]; }
  /// Returns the elements of `range(b)` in `kept`, the memory of all stored elements.
  template <class T>
  std::span<T> of(std::span<T> kept, std::size_t b) const noexcept {
    return kept.subspan(begins_[b], ranges_[b].size);
  }

  /// Returns the lengths of all ranks' pieces of bucket `b`; valid until the next call.
  std::span<const std::size_t> lengths(const parameter_layout& layout, std::size_t b) {
    const auto ranks = static_cast<int>(lengths_.size());
    for (int rank = 0; rank < ranks; ++rank) {
      lengths_[static_cast<std::size_t>(rank)] = layout.piece(b, rank, ranks).size;
    }
    return lengths_;
  }

 private:
  std::size_t elements_ = 0;
  std::vector<element_range> ranges_;
  std::vector<std::size_t> begins_;
  std::vector<std::size_t> lengths_;
};

}  // namespace detail
HOCKET_END_NAMESPACE
