// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The table of kernels for one operation on one type. An engine that knows neither calls them on a stream.
///
/// Each number of sources up to 8 has a kernel that issues all of its loads before it uses them. More sources use one
/// kernel that loops over them. It combines in registers, in the accumulator's type, and rounds once, like the host; in
/// the fixed tree, which rounds each combination, in local memory. A program has only the kernels that it names.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/kernel/device/combine.cuh>
#include <hocket/kernel/device/group.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/kernel/device/stream_kernel.hpp>
#include <hocket/operation/fixed_tree.hpp>
#include <hocket/operation/traits.hpp>

#include <cuda_runtime.h>
#include <cuda/stream_ref>

#include <cstddef>
#include <cstring>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// to[i] = from[0][i] ∘ from[1][i] ∘ …, in this order, for a number of sources known at run time. The sources are
/// contributions, and the result is finished. `to` may be one of them, but not a shifted part of one.
template <class Op, class T>
struct long_combination {
  using form = form_of_elements<Op, T, contribution::plain>;
  using reduction = typename form::reduction;
  using accumulator = typename form::accumulator;
  using partial = typename form::partial;
  using element = typename form::element;
  static constexpr std::size_t most_sources = 256;  ///< their pointers take half of the space for a kernel's arguments
  static constexpr std::size_t group_size = form::group_size;
  static constexpr bool has_groups = group_size * sizeof(element) <= detail::longest_group_bytes;

  Op op;
  element* to;
  unsigned sources;
  const element* from[most_sources];

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const { to[i] = combined(op, from, sources, i); }
  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    if constexpr (has_groups) store_group(to + first, combined_group(op, from, sources, first));
  }
  __device__ void called_on_device() const { form::call_on_device(op, to); }
  /// How `count` elements are assigned to threads.
  HOCKET_HOST_DEVICE partition parts(std::size_t count) const { return dealt(count, to, from, sources); }

  HOCKET_HOST_DEVICE static element combined(const Op& op, const element* const* from, unsigned sources,
                                             std::size_t i) {
    if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
      values_of<partial, deepest> kept{};
      hocket::detail::walk_fixed_tree(sources, store_element{kept, op, from, i}, merge_partials{kept, op});
      return form::written(op, kept.get(0), static_cast<int>(sources));
    } else {
      accumulator sum = read(op, from[0][i]);
      for (unsigned k = 1; k < sources; ++k) sum = reduction::combine(op, sum, read(op, from[k][i]));
      return form::written(op, static_cast<partial>(sum), static_cast<int>(sources));
    }
  }

  HOCKET_HOST_DEVICE static group<element, group_size> combined_group(const Op& op, const element* const* from,
                                                                      unsigned sources, std::size_t first) {
    group<element, group_size> next;
    if constexpr (hocket::detail::is_in_fixed_tree<Op>) {
      for (std::size_t i = 0; i < group_size; ++i) next.set(i, combined(op, from, sources, first + i));
      return next;
    } else {
      values_of<accumulator, group_size> sums;
      next = load_group<group_size>(from[0] + first);
      HOCKET_DETAIL_UNROLL
      for (std::size_t i = 0; i < group_size; ++i) sums.set(i, read(op, next.get(i)));
      for (unsigned k = 1; k < sources; ++k) {
        next = load_group<group_size>(from[k] + first);
        HOCKET_DETAIL_UNROLL
        for (std::size_t i = 0; i < group_size; ++i) {
          sums.set(i, reduction::combine(op, sums.get(i), read(op, next.get(i))));
        }
      }
      HOCKET_DETAIL_UNROLL
      for (std::size_t i = 0; i < group_size; ++i) {
        next.set(i, form::written(op, static_cast<partial>(sums.get(i)), static_cast<int>(sources)));
      }
      return next;
    }
  }

  HOCKET_HOST_DEVICE static partition dealt(std::size_t count, element* to, const element* const* from,
                                            unsigned sources) {
    if constexpr (!has_groups) return {count, count, 0, 1};
    partition result = cut(count, group_size, extent_of(to));
    for (unsigned k = 0; k < sources; ++k) result.keep_within(extent_of(from[k]));
    return result;
  }

 private:
  static constexpr std::size_t deepest = 10;  ///< levels of the tree over `most_sources`

  HOCKET_HOST_DEVICE static accumulator read(const Op& op, const element& value) {
    return static_cast<accumulator>(form::read(op, value));
  }

  /// Function objects for `walk_fixed_tree`, because kernels could not call lambdas.
  struct store_element {
    values_of<partial, deepest>& kept;
    const Op& op;
    const element* const* from;
    std::size_t i;
    HOCKET_HOST_DEVICE void operator()(std::size_t level, std::size_t source) const {
      kept.set(level, form::read(op, from[source][i]));
    }
  };
  struct merge_partials {
    values_of<partial, deepest>& kept;
    const Op& op;
    HOCKET_HOST_DEVICE void operator()(std::size_t level) const {
      kept.set(level, reduction::combine_partials(op, kept.get(level), kept.get(level + 1)));
    }
  };
};

/// to[k][i] = from[0][i] ∘ from[1][i] ∘ … for each k: the result of all ranks of one device, computed once. One thread
/// reads an element from all sources, then writes it, so that `to[k]` may be `from[k]`, but not a shifted part of one.
template <class Op, class T, std::size_t Ranks>
struct fused_combination {
  using alone = combination<Op, T, Ranks, contribution::plain>;
  using element = typename alone::element;

  alone sources;  ///< its `to` is the first destination
  element* to[Ranks];

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const {
    const element result = sources.combined(typename alone::row{sources, i});
    HOCKET_DETAIL_UNROLL
    for (std::size_t k = 0; k < Ranks; ++k) to[k][i] = result;
  }

  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    if constexpr (alone::has_groups) {
      const auto result = sources.combined_group(first);
      HOCKET_DETAIL_UNROLL
      for (std::size_t k = 0; k < Ranks; ++k) store_group(to[k] + first, result);
    }
  }

  __device__ void called_on_device() const { sources.called_on_device(); }

  /// How `count` elements are assigned to threads. Packs that are read around a group may hold elements that another
  /// thread is writing: these are not used.
  HOCKET_HOST_DEVICE partition parts(std::size_t count) const { return sources.parts(count); }
};

/// The same for any number of ranks up to `most_ranks`.
template <class Op, class T>
struct long_fused_combination {
  using alone = long_combination<Op, T>;
  using element = typename alone::element;
  static constexpr std::size_t most_ranks = 128;

  Op op;
  unsigned ranks;
  element* to[most_ranks];
  const element* from[most_ranks];

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const {
    const element result = alone::combined(op, from, ranks, i);
    for (unsigned k = 0; k < ranks; ++k) to[k][i] = result;
  }
  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    if constexpr (alone::has_groups) {
      const auto result = alone::combined_group(op, from, ranks, first);
      for (unsigned k = 0; k < ranks; ++k) store_group(to[k] + first, result);
    }
  }
  __device__ void called_on_device() const { alone::form::call_on_device(op, to[0]); }
  HOCKET_HOST_DEVICE partition parts(std::size_t count) const { return alone::dealt(count, to[0], from, ranks); }
};

HOCKET_BEGIN_LAUNCHERS

namespace element_kernels {

template <class Op, class T, std::size_t Ranks>
failure launch_fused(::cuda::stream_ref stream, const Op& op, void* const* to, const void* const* from,
                     std::size_t count) {
  using body_type = fused_combination<Op, T, Ranks>;
  using element = typename body_type::element;
  body_type body{{op, static_cast<element*>(to[0]), {}}, {}};
  for (std::size_t k = 0; k < Ranks; ++k) {
    body.sources.from[k] = static_cast<const element*>(from[k]);
    body.to[k] = static_cast<element*>(to[k]);
  }
  return launch("all_reduce", body, body.parts(count), 2 * Ranks * count * sizeof(element), stream);
}

template <class Op, class T>
failure launch_long_fused(::cuda::stream_ref stream, const Op& op, void* const* to, const void* const* from,
                          std::size_t ranks, std::size_t count) {
  using body_type = long_fused_combination<Op, T>;
  using element = typename body_type::element;
  if (ranks > body_type::most_ranks) {
    return make_failure(errc::invalid_argument, "one launch combines for at most 128 ranks",
                        {.operation = "all_reduce"});
  }
  body_type body{op, static_cast<unsigned>(ranks), {}, {}};
  for (std::size_t k = 0; k < ranks; ++k) {
    body.to[k] = static_cast<element*>(to[k]);
    body.from[k] = static_cast<const element*>(from[k]);
  }
  return launch("all_reduce", body, body.parts(count), 2 * ranks * count * sizeof(element), stream);
}

/// See `stream_kernel::to_all`.
template <class Op, class T>
failure combine_to_all(void* stream, const void* op, void* const* to, const void* const* from, std::size_t ranks,
                       std::size_t count) {
  const ::cuda::stream_ref where(static_cast<cudaStream_t>(stream));
  const Op& combine_by = *static_cast<const Op*>(op);
  switch (ranks) {
    case 2: return launch_fused<Op, T, 2>(where, combine_by, to, from, count);
    case 4: return launch_fused<Op, T, 4>(where, combine_by, to, from, count);
    case 8: return launch_fused<Op, T, 8>(where, combine_by, to, from, count);
    default: return launch_long_fused<Op, T>(where, combine_by, to, from, ranks, count);
  }
}

/// See `stream_kernel::load`.
template <class Op, class T>
failure load_fused(std::size_t ranks) {
  switch (ranks) {
    case 2: return load<fused_combination<Op, T, 2>>("all_reduce");
    case 4: return load<fused_combination<Op, T, 4>>("all_reduce");
    case 8: return load<fused_combination<Op, T, 8>>("all_reduce");
    default: return load<long_fused_combination<Op, T>>("all_reduce");
  }
}

template <class Op, class T, std::size_t Sources>
failure launch_fixed(::cuda::stream_ref stream, const Op& op, void* to, const void* const* from, std::size_t count) {
  using element = typename form_of_elements<Op, T, contribution::plain>::element;
  const element* sources[Sources];
  for (std::size_t k = 0; k < Sources; ++k) sources[k] = static_cast<const element*>(from[k]);
  return combine<T, contribution::plain>(stream, op, static_cast<element*>(to), sources, count);
}

template <class Op, class T>
failure launch_long(::cuda::stream_ref stream, const Op& op, void* to, const void* const* from, std::size_t sources,
                    std::size_t count) {
  using body_type = long_combination<Op, T>;
  using element = typename body_type::element;
  if (sources > body_type::most_sources) {
    return make_failure(errc::invalid_argument, "one kernel combines at most 256 buffers", {.operation = "combine"});
  }
  body_type body{op, static_cast<element*>(to), static_cast<unsigned>(sources), {}};
  for (std::size_t k = 0; k < sources; ++k) body.from[k] = static_cast<const element*>(from[k]);
  return launch("combine", body, body.parts(count), (sources + 1) * count * sizeof(element), stream);
}

/// See `stream_kernel::load`.
template <class Op, class T>
failure load_kernel(std::size_t sources) {
  switch (sources) {
    case 2: return load<combination<Op, T, 2, contribution::plain>>("combine");
    case 3: return load<combination<Op, T, 3, contribution::plain>>("combine");
    case 4: return load<combination<Op, T, 4, contribution::plain>>("combine");
    case 5: return load<combination<Op, T, 5, contribution::plain>>("combine");
    case 6: return load<combination<Op, T, 6, contribution::plain>>("combine");
    case 7: return load<combination<Op, T, 7, contribution::plain>>("combine");
    case 8: return load<combination<Op, T, 8, contribution::plain>>("combine");
    default: return load<long_combination<Op, T>>("combine");
  }
}

/// See `stream_kernel::combine_many`.
template <class Op, class T>
failure combine_many(void* stream, const void* op, void* to, const void* const* from, std::size_t sources,
                     std::size_t count) {
  const ::cuda::stream_ref where(static_cast<cudaStream_t>(stream));
  const Op& combine_by = *static_cast<const Op*>(op);
  if (count == 0 || sources == 0) return {};
  switch (sources) {
    case 2: return launch_fixed<Op, T, 2>(where, combine_by, to, from, count);
    case 3: return launch_fixed<Op, T, 3>(where, combine_by, to, from, count);
    case 4: return launch_fixed<Op, T, 4>(where, combine_by, to, from, count);
    case 5: return launch_fixed<Op, T, 5>(where, combine_by, to, from, count);
    case 6: return launch_fixed<Op, T, 6>(where, combine_by, to, from, count);
    case 7: return launch_fixed<Op, T, 7>(where, combine_by, to, from, count);
    case 8: return launch_fixed<Op, T, 8>(where, combine_by, to, from, count);
    default: return launch_long<Op, T>(where, combine_by, to, from, sources, count);
  }
}

}  // namespace element_kernels

/// The kernels for combining contributions of `Op` on `T`.
template <class Op, class T>
inline constexpr stream_kernel stream_kernel_of{.size = sizeof(typename long_combination<Op, T>::element),
                                                .finishes = hocket::reduction<Op, T>::prepares,
                                                .most_sources = long_combination<Op, T>::most_sources,
                                                .combine_many = &element_kernels::combine_many<Op, T>,
                                                .load = &element_kernels::load_kernel<Op, T>};

/// Only the kernels that combine for all ranks of one device in one launch.
template <class Op, class T>
inline constexpr stream_kernel fused_kernel_of{.size = sizeof(typename long_combination<Op, T>::element),
                                               .finishes = hocket::reduction<Op, T>::prepares,
                                               .load = &element_kernels::load_fused<Op, T>,
                                               .most_fused = long_fused_combination<Op, T>::most_ranks,
                                               .to_all = &element_kernels::combine_to_all<Op, T>};

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
