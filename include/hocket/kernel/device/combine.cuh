// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Element-wise reduction of 2 to 8 buffers of one GPU, in one pass.
///
/// CUB reduces one buffer to one value; collectives reduce several buffers to one, by any operation and type, at the
/// speed of memory. The work of one thread on one group is a plain function, `combination`, that also runs on the host.
/// It is the fold of kernel/host/element_kernel.hpp: same order of sources, same accumulator, rounded once. It gives
/// the same bits if user-defined operations do (nvcc rounds a * b + c once, unless called with -fmad=false), except for
/// NaNs from arithmetic on floats or doubles: their sign and payload depend on the processor.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/kernel/device/group.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>

#include <cuda/stream_ref>

#include <cstddef>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// What the sources of a combination contain.
enum class contribution {
  prepared,  ///< partial results, as the engine sends them; the result is another one
  plain      ///< elements: each is prepared, and the result is finished
};

namespace detail {

/// If a group is longer than this, its elements are processed one at a time: they fill the registers anyway.
inline constexpr std::size_t longest_group_bytes = 128;

/// Calls user-defined functions, so that nvcc rejects host-only ones. Objects of the standard library are replaced.
template <class Op, class Accumulator>
__device__ void call_on_device(const Op& op, const Accumulator& value) {
  if constexpr (hocket::detail::is_applied_as_it_is<Op>::value) static_cast<void>(op(value, value));
}
template <class Op, class Wire, class Accumulator>
__device__ void call_on_device(const hocket::detail::wired<Op, Wire>& op, const Accumulator& value) {
  call_on_device(op.op, value);
}

}  // namespace detail

/// How a kernel reads an element of a source, and how it writes the result.
template <class Op, class T, contribution Kind>
struct form_of_elements {
  using reduction = hocket::reduction<Op, T>;
  using accumulator = typename reduction::accumulator;
  using partial = typename reduction::partial;
  static constexpr bool prepares = Kind == contribution::plain && reduction::prepares;
  using element = std::conditional_t<prepares, T, partial>;
  static constexpr std::size_t group_size = group_of(sizeof(element));

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static partial read(const Op& op, const element& value) {
    if constexpr (prepares) {
      return reduction::prepare(op, value);
    } else {
      return value;
    }
  }

  HOCKET_DETAIL_CALLS_USERS
  HOCKET_HOST_DEVICE static element written(const Op& op, const partial& sum, int contributions) {
    if constexpr (prepares) {
      return reduction::finish(op, sum, contributions);
    } else {
      return sum;
    }
  }

  __device__ static void call_on_device(const Op& op, const void* memory) {
    if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
      form_of_elements<decltype(op.op), T, Kind>::call_on_device(op.op, memory);
    } else if constexpr (hocket::detail::three_part_operation<Op, T>) {
      const auto value = op.prepare(*static_cast<const T*>(memory));
      static_cast<void>(op.finish(op.combine(value, value), 1));
    } else {
      detail::call_on_device(op, *static_cast<const accumulator*>(memory));
    }
  }
};

/// to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order: from the left, or in the tree of `in_fixed_tree<Op>`. `to` may
/// be one of the sources, but not a shifted part of one.
template <class Op, class T, std::size_t Sources, contribution Kind = contribution::prepared>
struct combination {
  static_assert(Sources >= 2 && Sources <= 8, "hocket: a combination must have 2 to 8 sources");

  using form = form_of_elements<Op, T, Kind>;
  using reduction = typename form::reduction;
  using accumulator = typename form::accumulator;
  using partial = typename form::partial;
  using element = typename form::element;
  static constexpr bool prepares = form::prepares;
  static constexpr std::size_t group_size = form::group_size;
  static constexpr bool has_groups = group_size * sizeof(element) <= detail::longest_group_bytes;

  Op op;
  element* to;
  const element* from[Sources];

  /// One element of each source.
  struct row {
    const combination& all;
    std::size_t i;
    HOCKET_HOST_DEVICE partial read(std::size_t k) const { return form::read(all.op, all.from[k][i]); }
    HOCKET_HOST_DEVICE partial combine(const partial& a, const partial& b) const {
      return reduction::combine_partials(all.op, a, b);
    }
  };
  struct row_of_groups {
    const combination& all;
    const group<element, group_size> (&sources)[Sources];
    std::size_t i;
    HOCKET_HOST_DEVICE partial read(std::size_t k) const { return form::read(all.op, sources[k].get(i)); }
    HOCKET_HOST_DEVICE partial combine(const partial& a, const partial& b) const {
      return reduction::combine_partials(all.op, a, b);
    }
  };

  template <class Row>
  HOCKET_HOST_DEVICE element combined(const Row& each) const {
    if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
      return written(hocket::detail::fixed_tree_over<Sources>::value(each));
    } else {
      auto sum = static_cast<accumulator>(each.read(0));
      HOCKET_DETAIL_UNROLL
      for (std::size_t k = 1; k < Sources; ++k) {
        sum = reduction::combine(op, sum, static_cast<accumulator>(each.read(k)));
      }
      return written(static_cast<partial>(sum));
    }
  }

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const { to[i] = combined(row{*this, i}); }

  HOCKET_HOST_DEVICE group<element, group_size> combined_group(std::size_t first) const {
    return combined_group(first, std::make_index_sequence<Sources>());
  }

  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    if constexpr (has_groups) store_group(to + first, combined_group(first));
  }

  __device__ void called_on_device() const { form::call_on_device(op, to); }

  /// How `count` elements are assigned to threads.
  HOCKET_HOST_DEVICE partition parts(std::size_t count) const {
    return parts(count, std::make_index_sequence<Sources>());
  }

 private:
  HOCKET_HOST_DEVICE element written(const partial& sum) const {
    return form::written(op, sum, static_cast<int>(Sources));
  }

  template <std::size_t... K>
  HOCKET_HOST_DEVICE group<element, group_size> combined_group(std::size_t first, std::index_sequence<K...>) const {
    const packs_around<element, group_size> packs[] = {packs_around<element, group_size>(from[K] + first)...};
    const group<element, group_size> sources[] = {packs[K].elements()...};
    group<element, group_size> result;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) result.set(i, combined(row_of_groups{*this, sources, i}));
    return result;
  }

  template <std::size_t... K>
  HOCKET_HOST_DEVICE partition parts(std::size_t count, std::index_sequence<K...>) const {
    if constexpr (has_groups) {
      return cut(count, group_size, extent_of(to), extent_of(from[K])...);
    } else {
      return {count, count, 0, 1};
    }
  }
};

HOCKET_BEGIN_LAUNCHERS

/// Combines `count` elements of `Sources` buffers on `stream`.
///
/// Buffers: memory that the current device can access: partial results, or elements for `contribution::plain`; aligned
/// for their type. `to` may be one of the sources. All must stay valid until the stream has executed the call. Cost:
/// reads each source once, writes `to` once. Order: that of the sources, whatever the count and alignment.
/// Errors: `errc::system`, with CUDA's message, if the kernel could not be launched.
template <class T, contribution Kind = contribution::prepared, class Op, std::size_t Sources>
failure combine(::cuda::stream_ref stream, const Op& op, typename combination<Op, T, Sources, Kind>::element* to,
                const typename combination<Op, T, Sources, Kind>::element* const (&from)[Sources], std::size_t count) {
  using body_type = combination<Op, T, Sources, Kind>;
  body_type body{op, to, {}};
  for (std::size_t k = 0; k < Sources; ++k) body.from[k] = from[k];
  const std::size_t bytes = (Sources + 1) * count * sizeof(typename body_type::element);
  return launch("combine", body, body.parts(count), bytes, stream);
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
