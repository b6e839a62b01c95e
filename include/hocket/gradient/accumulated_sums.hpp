// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The memory that an accumulator uses between two optimizer steps: the sums, and, unless these are whole on each rank,
/// the gradients of a microbatch that are being computed or in flight. The class has only the type of the sums as a
/// template parameter, so that accumulators with different reductions use one instantiation.
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

template <class T>
class accumulated_sums : public accumulated_step {
 public:
  accumulated_sums(parameter_layout layout, const accumulation_rules& rules, int rank, int ranks,
                   std::pmr::memory_resource* memory, const std::source_location& site)
      : accumulated_step(std::move(layout), rules, rank, ranks, site), memory_(memory),
        microbatch_gradients_(rules.keeps_whole ? 0 : this->layout().buckets()) {}

  /// Returns the memory to which the gradient of parameter `i` must be added.
  std::span<T> of(std::size_t i) {
    open(i, "of");
    const std::size_t b = layout().bucket_of(i);
    form(b);
    return formed(b).subspan(layout().of(i).first - layout().bucket(b).first, layout().of(i).size);
  }

  /// The sums of bucket `b` that this rank has at the end of a step.
  std::span<T> result(std::size_t b) noexcept {
    if (rules().keeps_whole) return kept_.elements().subspan(own_range(b).first, own_range(b).size);
    return share().of(kept_.elements(), b);
  }

 protected:
  void allocate() { kept_ = flat_buffer<T>(rules().keeps_whole ? layout().size() : share().elements(), memory_); }

  /// Memory to which the gradient of the current microbatch is added; with `keeps_whole`, the sums themselves.
  std::span<T> formed(std::size_t b) noexcept {
    if (!rules().keeps_whole) return microbatch_gradients_[b].elements();
    return kept_.elements().subspan(layout().bucket(b).first, layout().bucket(b).size);
  }
  /// The part of `formed(b)` whose sum over the ranks this rank gets.
  std::span<T> own(std::size_t b) noexcept {
    return formed(b).subspan(reduced_range(b).first - layout().bucket(b).first, reduced_range(b).size);
  }
  /// The part of the sums to which `own(b)` is added.
  std::span<T> summed(std::size_t b) noexcept {
    return result(b).subspan(reduced_range(b).first - own_range(b).first, reduced_range(b).size);
  }

 private:
  void clear_kept() final { std::fill(kept_.elements().begin(), kept_.elements().end(), T{}); }

  void form(std::size_t b) final {
    if (rules().keeps_whole) return;
    make_room(b, !microbatch_gradients_[b].empty());
    if (microbatch_gradients_[b].empty()) microbatch_gradients_[b] = flat_buffer<T>(layout().bucket(b).size, memory_);
  }

  void fold(std::size_t b) final {
    if (rules().keeps_whole) return;
    const std::span<T> sum = summed(b), part = own(b);
    for (std::size_t at = 0; at < sum.size(); ++at) sum[at] += part[at];
    microbatch_gradients_[b] = {};
  }

  std::pmr::memory_resource* memory_;
  flat_buffer<T> kept_;
  std::vector<flat_buffer<T>> microbatch_gradients_;  ///< per bucket: the microbatch's gradient, while it exists
};

}  // namespace detail
HOCKET_END_NAMESPACE
