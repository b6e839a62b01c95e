// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The positions of a model's parameters in flat memory, and which parameters are communicated together. One message
/// per parameter is too many, and one for all parameters must wait for the last of them. So parameters share *buckets*,
/// in the order in which the backward pass completes their gradients: last layer first.
///
/// Parameters, their gradients and the optimizer's states have the same layout. A layout depends only on the list of
/// parameters and on the bucket limits, and must be equal on all ranks that communicate.
///
/// Source: the bucket rule of PyTorch's DistributedDataParallel (a bucket is closed when it has reached its limit, the
/// first one at 1 MiB so that communication starts early, later ones at 25 MiB), and Megatron-LM's alignment rule.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// One parameter of a model: this rank's part of a tensor.
struct parameter {
  std::string name;          ///< for messages and checkpoints
  std::size_t elements = 0;  ///< on this rank
  /// Whether this rank's elements count in norms over ranks. False if another rank of a model-parallel axis holds the
  /// first copy of the same elements: see `holds_first_copy` in gradient/typed.hpp.
  bool counts_in_norm = true;
  /// Whether weight decay applies to the parameter. It usually does not apply to gains and biases: see `undecayed`.
  bool decays = true;
  /// Whether a unit begins with this parameter, in forward order. A unit, such as a layer, is what `zero<3>` gathers
  /// together; no bucket extends into two units. Without units, layers that share a bucket each gather that bucket.
  bool begins_unit = false;
  /// Number of ranks, this one included, that hold slices or copies of the parameter along mesh axes over which its
  /// gradient is not summed. A norm must include these ranks: see `parameter_of` in gradient/typed.hpp.
  int model_ranks = 1;

  friend bool operator==(const parameter&, const parameter&) = default;
};

/// Returns a copy of the parameter to which weight decay does not apply: `undecayed({"gain", 64})`.
inline parameter undecayed(parameter of) {
  of.decays = false;
  return of;
}

/// The order in which every rank sends the buckets of one backward pass, whatever the order in which they become ready.
enum class bucket_order : unsigned char {
  backward,  ///< the order in which the backward pass completes buckets: hides most of the communication
  forward    ///< the order in which the next forward pass needs them: for `gradient_accumulator::finish_counts`
};

/// How parameters are divided into buckets, and how buckets are sent. A bucket ends with the parameter that reaches
/// its limit or begins a unit. The default limits are 1 MiB and 25 MiB of floats: see `of` for other types.
struct bucket_limits {
  std::size_t first_elements = std::size_t{1} << 18;  ///< limit of the first bucket
  std::size_t elements = std::size_t{25} << 18;       ///< limit of the other buckets
  /// Number of buckets that may be in flight while the next one is computed, if gradients are reduced at each
  /// microbatch. They need memory in addition to this rank's sums: see `consecutive_bucket_bytes` in
  /// optimizer/memory.hpp.
  std::size_t in_flight = 4;
  bucket_order order = bucket_order::backward;  ///< the order in which buckets are sent

  /// Returns limits given in bytes, for elements of `T`.
  template <class T>
  static constexpr bucket_limits of(std::size_t first_bytes = std::size_t{1} << 20,
                                    std::size_t bytes = std::size_t{25} << 20) noexcept {
    return {(first_bytes + sizeof(T) - 1) / sizeof(T), (bytes + sizeof(T) - 1) / sizeof(T)};
  }
};

/// Elements `first` … `first + size - 1`.
struct element_range {
  std::size_t first = 0;  ///< index of the first element
  std::size_t size = 0;   ///< number of elements

  constexpr std::size_t end() const noexcept { return first + size; }
  friend constexpr bool operator==(const element_range&, const element_range&) = default;
};

/// Returns the elements that are in both ranges.
constexpr element_range common_part(const element_range& a, const element_range& b) noexcept {
  const std::size_t first = std::max(a.first, b.first), end = std::min(a.end(), b.end());
  return {first, end > first ? end - first : 0};
}

/// Number of elements of a layout block. Parameters begin, and buckets are split among ranks, at multiples of it, so
/// results computed per layout block do not depend on the number of ranks. Gaps between parameters are 0, and are sent.
inline constexpr std::size_t layout_block_elements = 64;

/// Returns the piece of `bucket` that belongs to rank `rank` of `ranks`: 0 or more layout blocks, of which only the
/// last of the bucket may be incomplete. The numbers of blocks of any two ranks differ by at most one.
constexpr element_range piece_of(const element_range& bucket, int rank, int ranks) noexcept {
  const std::size_t blocks = bucket.size / layout_block_elements + (bucket.size % layout_block_elements != 0 ? 1 : 0);
  const auto cut = [&](int at) {
    const auto all = static_cast<std::size_t>(ranks), below = static_cast<std::size_t>(at);
    // blocks * below / all: no overflow
    return std::min(bucket.size, (blocks / all * below + blocks % all * below / all) * layout_block_elements);
  };
  return {bucket.first + cut(rank), cut(rank + 1) - cut(rank)};
}

/// The positions of all parameters in one flat buffer, and their division into buckets.
class parameter_layout {
 public:
  parameter_layout() = default;

  /// Raises `invalid_argument` if two parameters have the same name, or if there are too many elements to address.
  /// @param in_forward_order the parameters, in the order in which the forward pass needs them
  explicit parameter_layout(std::vector<parameter> in_forward_order, const bucket_limits& limits = {});

  /// Number of elements of the flat memory, gaps included.
  std::size_t size() const noexcept { return size_; }
  std::size_t parameters() const noexcept { return parameters_.size(); }  ///< number of parameters
  std::size_t buckets() const noexcept { return buckets_.size(); }        ///< number of buckets
  const bucket_limits& limits() const noexcept { return limits_; }        ///< limits of the buckets

  const parameter& operator[](std::size_t i) const noexcept { return parameters_[i]; }
  /// Elements of parameter `i`; parameters are numbered in forward order.
  const element_range& of(std::size_t i) const noexcept { return ranges_[i]; }
  std::size_t bucket_of(std::size_t i) const noexcept { return bucket_of_[i]; }  ///< bucket of parameter `i`
  /// Elements of bucket `b`, gaps included; buckets are numbered in backward order, so bucket 0 has the last layers.
  const element_range& bucket(std::size_t b) const noexcept { return buckets_[b]; }
  /// The parameters in bucket `b`, in memory order: the last of the forward pass first.
  const std::vector<std::size_t>& members(std::size_t b) const noexcept { return members_[b]; }

  /// Returns the number of the bucket that is sent at position `place`, from 0, in the order of `limits().order`.
  std::size_t bucket_sent_at(std::size_t place) const noexcept {
    return limits_.order == bucket_order::backward ? place : buckets() - 1 - place;
  }

  /// Returns the number of elements of each bucket, gaps included, for the formulas of optimizer/memory.hpp.
  std::vector<std::size_t> bucket_elements() const {
    std::vector<std::size_t> all;
    for (const element_range& each : buckets_) all.push_back(each.size);
    return all;
  }

  /// Calls `visit(i, part)` for each parameter `i` of bucket `b` that has elements in `within`; `part` is the range of
  /// these elements. Both ranges are relative to the beginning of the flat memory.
  template <class Visit>
  void visit_parts(std::size_t b, const element_range& within, Visit visit) const {
    for (const std::size_t i : members(b)) {
      const element_range part = common_part(of(i), within);
      if (part.size > 0) visit(i, part);
    }
  }

  /// True if both layouts have equal parameters in equal buckets.
  friend bool operator==(const parameter_layout& a, const parameter_layout& b) noexcept {
    return a.parameters_ == b.parameters_ && a.buckets_ == b.buckets_;
  }

  /// Returns a description of parameter `i` for error messages.
  std::string describe(std::size_t i) const;

  /// Returns the index of the parameter with this name. Raises `invalid_argument` if there is none.
  std::size_t find(std::string_view name) const;

  /// Returns the piece of bucket `b` that belongs to rank `rank`, relative to the flat memory: see `piece_of`.
  element_range piece(std::size_t b, int rank, int ranks) const noexcept { return piece_of(buckets_[b], rank, ranks); }

 private:
  static constexpr std::size_t rounded(std::size_t elements) noexcept {
    return (elements + layout_block_elements - 1) / layout_block_elements * layout_block_elements;
  }

  void check() const;

  std::vector<parameter> parameters_;
  bucket_limits limits_;
  std::vector<element_range> ranges_;
  std::vector<std::size_t> bucket_of_;
  std::vector<element_range> buckets_;
  std::vector<std::vector<std::size_t>> members_;
  std::size_t size_ = 0;
};

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/parameter_layout.ipp>
#endif
