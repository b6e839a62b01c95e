// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Where each parameter of a model lies in flat memory, and which of them are communicated together. A message per
/// parameter is too many, and one for all must wait for the last of them; so parameters share *buckets*, in the order
/// in which the backward pass is done with them: last layer first.
///
/// Parameters, their gradients and the optimizer's states have the same layout. A layout is a function of sizes alone,
/// and must be equal on all ranks that communicate.
///
/// Source: the bucket rule of PyTorch's DistributedDataParallel (a bucket is closed when it has reached its limit, the
/// first one at 1 MiB so that communication starts early, later ones at 25 MiB), the alignment of Megatron-LM's.
#pragma once

#include <hocket/core/config.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// One parameter of a model: a tensor, as it lies in this rank's memory.
struct parameter {
  std::string name;
  std::size_t elements = 0;
  /// Whether this rank's elements count in norms over ranks. False where another rank of a model-parallel axis has the
  /// same elements and is first: see `holds_first_copy`.
  bool counts_in_norm = true;
  /// Whether weight decay draws it to zero. Gains and biases usually are not: see `undecayed`.
  bool decays = true;
  /// Whether it is the first, in forward order, of what is gathered together at `zero<3>`, as a layer is: no bucket then
  /// has both it and what comes before. Else a bucket is gathered for each of the layers that have a part of it.
  bool begins_unit = false;
  /// How many ranks along other axes than those that its gradient is added over have slices or copies of it, with this
  /// one: a norm must be taken over these, too. See `parameter_of`.
  int model_ranks = 1;

  friend bool operator==(const parameter&, const parameter&) = default;
};

/// The same parameter, left alone by weight decay: `undecayed({"gain", 64})`.
inline parameter undecayed(parameter of) {
  of.decays = false;
  return of;
}

/// In which order the buckets of one backward pass leave. The same on all ranks, whatever is ready when.
enum class bucket_order : unsigned char {
  backward,  ///< as the backward pass is done with them: most of the communication is hidden behind it
  forward    ///< those that the next forward pass needs first come first: for `optimizer::step` after `finish_counts`
};

/// A bucket is closed by the parameter that brings it to its limit or beyond, or that begins a unit. The defaults are 1 MiB and 25 MiB of
/// floats; `of<T>()` has those of another type.
struct bucket_limits {
  std::size_t first_elements = std::size_t{1} << 18;
  std::size_t elements = std::size_t{25} << 18;
  /// Where gradients are reduced at each microbatch, so many buckets may be on their way while the next one is formed:
  /// what they need is memory beyond what stays. See `passing_bytes`.
  std::size_t in_flight = 4;
  bucket_order order = bucket_order::backward;

  /// Limits in bytes, for elements of `T`.
  template <class T>
  static constexpr bucket_limits of(std::size_t first_bytes = std::size_t{1} << 20,
                                    std::size_t bytes = std::size_t{25} << 20) noexcept {
    return {(first_bytes + sizeof(T) - 1) / sizeof(T), (bytes + sizeof(T) - 1) / sizeof(T)};
  }
};

/// Elements `first` … `first + size - 1`.
struct element_range {
  std::size_t first = 0;
  std::size_t size = 0;

  constexpr std::size_t end() const noexcept { return first + size; }
  friend constexpr bool operator==(const element_range&, const element_range&) = default;
};

/// The elements that are in both.
constexpr element_range common_part(const element_range& a, const element_range& b) noexcept {
  const std::size_t first = std::max(a.first, b.first), end = std::min(a.end(), b.end());
  return {first, end > first ? end - first : 0};
}

/// Buckets are cut among ranks at multiples of so many elements: what is computed in blocks of this size does not
/// depend on how many ranks there are. Parameters begin at such multiples; gaps are zero, and travel.
inline constexpr std::size_t layout_block = 64;

/// The part of `bucket` that is rank `rank`'s, of `ranks` that share it: whole blocks, as many as any other's or one
/// more or less, possibly none; what is left of a last block that is not whole goes with it.
constexpr element_range piece_of(const element_range& bucket, int rank, int ranks) noexcept {
  const std::size_t blocks = bucket.size / layout_block + (bucket.size % layout_block != 0 ? 1 : 0);
  const auto cut = [&](int at) {
    const auto all = static_cast<std::size_t>(ranks), below = static_cast<std::size_t>(at);
    // blocks * below / all: no overflow
    return std::min(bucket.size, (blocks / all * below + blocks % all * below / all) * layout_block);
  };
  return {bucket.first + cut(rank), cut(rank + 1) - cut(rank)};
}

class parameter_layout {
 public:
  parameter_layout() = default;

  /// @param in_forward_order the parameters, in the order in which the forward pass needs them
  /// Raises `invalid_argument` for two parameters of one name, and for more elements than memory can have.
  explicit parameter_layout(std::vector<parameter> in_forward_order, const bucket_limits& limits = {});

  /// Elements of the flat memory, gaps included.
  std::size_t size() const noexcept { return size_; }
  std::size_t parameters() const noexcept { return parameters_.size(); }
  std::size_t buckets() const noexcept { return buckets_.size(); }
  const bucket_limits& limits() const noexcept { return limits_; }

  const parameter& operator[](std::size_t i) const noexcept { return parameters_[i]; }
  /// Where parameter `i`, in forward order, lies.
  const element_range& of(std::size_t i) const noexcept { return ranges_[i]; }
  std::size_t bucket_of(std::size_t i) const noexcept { return bucket_of_[i]; }
  /// Where bucket `b`, in the order of the backward pass, lies, gaps included.
  const element_range& bucket(std::size_t b) const noexcept { return buckets_[b]; }
  /// The parameters in bucket `b`, as they lie in it: the last of the forward pass first.
  const std::vector<std::size_t>& members(std::size_t b) const noexcept { return members_[b]; }

  /// Which bucket leaves as number `place`, from 0.
  std::size_t leaves(std::size_t place) const noexcept {
    return limits_.order == bucket_order::backward ? place : buckets() - 1 - place;
  }

  /// Elements of each bucket, gaps included: for the formulas of optimizer/memory.hpp.
  std::vector<std::size_t> bucket_elements() const {
    std::vector<std::size_t> all;
    for (const element_range& each : buckets_) all.push_back(each.size);
    return all;
  }

  /// Calls `visit(i, part)` for each parameter of bucket `b` that has elements in `within`: `part` is where these lie.
  /// Both count from the beginning of the flat memory.
  template <class Visit>
  void visit_parts(std::size_t b, const element_range& within, Visit visit) const {
    for (const std::size_t i : members(b)) {
      const element_range part = common_part(of(i), within);
      if (part.size > 0) visit(i, part);
    }
  }

  /// Whether both put the same parameters into the same buckets.
  friend bool operator==(const parameter_layout& a, const parameter_layout& b) noexcept {
    return a.parameters_ == b.parameters_ && a.buckets_ == b.buckets_;
  }

  /// Parameter `i` in words, for errors.
  std::string describe(std::size_t i) const;

  /// The number of the parameter with this name. Raises `invalid_argument` if there is none.
  std::size_t find(std::string_view name) const;

  /// The part of bucket `b` that is rank `rank`'s: see `piece_of`. Counted from the beginning of the flat memory.
  element_range piece(std::size_t b, int rank, int ranks) const noexcept { return piece_of(buckets_[b], rank, ranks); }

 private:
  static constexpr std::size_t rounded(std::size_t elements) noexcept {
    return (elements + layout_block - 1) / layout_block * layout_block;
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
