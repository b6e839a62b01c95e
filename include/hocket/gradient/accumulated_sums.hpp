// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory of a step of gradient accumulation. It does not depend on how an accumulator reduces.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/flat_buffer.hpp>
#include <hocket/gradient/accumulated_step.hpp>
#include <hocket/gradient/parameter_layout.hpp>

#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <source_location>
#include <span>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// The stored sums, and per bucket the gradient of a microbatch that is being computed or in flight. With `keeps_whole`
/// one buffer serves as both: gradients are added to the sums before these are reduced.
template <class T>
class accumulated_sums : public accumulated_step {
 public:
  accumulated_sums(parameter_layout layout, const accumulation_rules& rules, int rank, int ranks,
                   std::pmr::memory_resource* memory, const std::source_location& site)
      : accumulated_step(std::move(layout), rules, rank, ranks, site), memory_(memory),
        microbatch_gradients_(rules.keeps_whole ? 0 : this->layout().buckets()) {}

  /// Returns the memory to which the gradient of parameter `i` must be added.
  std::span<T> of(std::size_t i) {
    record_use(i, "of");
    const std::size_t b = layout().bucket_of(i);
    allocate_microbatch_gradient(b);
    return microbatch_gradient(b).subspan(layout().of(i).first - layout().bucket(b).first, layout().of(i).size);
  }

  /// The sums of the part of bucket `b` that this rank stores, `own_range(b)`.
  std::span<T> result(std::size_t b) noexcept {
    if (rules().keeps_whole) return sums_.elements().subspan(own_range(b).first, own_range(b).size);
    return share().of(sums_.elements(), b);
  }

 protected:
  void allocate() { sums_ = flat_buffer<T>(rules().keeps_whole ? layout().size() : share().elements(), memory_); }

  /// Memory in which the gradient of bucket `b` is computed in a microbatch.
  std::span<T> microbatch_gradient(std::size_t b) noexcept {
    if (!rules().keeps_whole) return microbatch_gradients_[b].elements();
    return sums_.elements().subspan(layout().bucket(b).first, layout().bucket(b).size);
  }
  /// The part of `microbatch_gradient(b)` that a reduction yields on this rank, `reduced_range(b)`.
  std::span<T> reduced_part(std::size_t b) noexcept {
    return microbatch_gradient(b).subspan(reduced_range(b).first - layout().bucket(b).first, reduced_range(b).size);
  }
  /// The part of the stored sums at `reduced_range(b)`.
  std::span<T> reduced_part_of_sums(std::size_t b) noexcept {
    return result(b).subspan(reduced_range(b).first - own_range(b).first, reduced_range(b).size);
  }

 private:
  void clear_sums() final { std::fill(sums_.elements().begin(), sums_.elements().end(), T{}); }

  void allocate_microbatch_gradient(std::size_t b) final {
    if (rules().keeps_whole) return;
    wait_for_room(b, !microbatch_gradients_[b].empty());
    if (microbatch_gradients_[b].empty()) microbatch_gradients_[b] = flat_buffer<T>(layout().bucket(b).size, memory_);
  }

  void add_to_sums(std::size_t b) final {
    if (rules().keeps_whole) return;
    const std::span<T> sum = reduced_part_of_sums(b), part = reduced_part(b);
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += part[at];
    microbatch_gradients_[b] = {};
  }

  std::pmr::memory_resource* memory_;
  flat_buffer<T> sums_;
  std::vector<flat_buffer<T>> microbatch_gradients_;  ///< per bucket: the microbatch's gradient, while it exists
};

}  // namespace detail
HOCKET_END_NAMESPACE
