// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// sum += scale * gradient, and optionally a cast of the result to the wire type, in one pass.
///
/// Gradients of many microbatches are weighted and added in a wide type, and the last addition is followed by a scale
/// and a cast to the type that is sent. Separate passes would read and write the same memory three times. Product and
/// sum are rounded separately, as on the host; a fused instruction would give other bits.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/kernel/device/group.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/operation/apply.hpp>

#include <cuda/stream_ref>

#include <cstddef>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// sum[i] = sum[i] + scale * from[i], in the type of the sums.
template <class Sum, class From>
struct accumulation {
  static constexpr std::size_t group_size = group_of(sizeof(Sum), sizeof(From));

  Sum* sum;
  const From* from;
  Sum scale;

  HOCKET_HOST_DEVICE Sum sum_of(const Sum& before, const From& value) const {
    return static_cast<Sum>(before + hocket::detail::rounded_product(scale, static_cast<Sum>(value)));
  }

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const { sum[i] = sum_of(sum[i], from[i]); }

  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    const packs_around<Sum, group_size> before(sum + first);
    const packs_around<From, group_size> added(from + first);
    const auto sums = before.elements();
    const auto values = added.elements();
    group<Sum, group_size> results;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) results.set(i, sum_of(sums.get(i), values.get(i)));
    store_group(sum + first, results);
  }

  HOCKET_HOST_DEVICE partition parts(std::size_t count) const {
    return cut(count, group_size, extent_of(sum), extent_of(from));
  }
};

/// Like `accumulation`, and to[i] = cast_scale * sum[i], rounded once to the type of `to`.
template <class Sum, class From, class To>
struct accumulation_and_cast {
  static constexpr std::size_t group_size = group_of(sizeof(Sum), sizeof(From), sizeof(To));

  accumulation<Sum, From> addition;
  To* to;
  Sum cast_scale;

  HOCKET_HOST_DEVICE To cast(const Sum& sum) const {
    return static_cast<To>(hocket::detail::rounded_product(cast_scale, sum));
  }

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const {
    addition.on_element(i);
    to[i] = cast(addition.sum[i]);
  }

  HOCKET_HOST_DEVICE void on_group(std::size_t first) const {
    const packs_around<Sum, group_size> before(addition.sum + first);
    const packs_around<From, group_size> added(addition.from + first);
    const auto sums = before.elements();
    const auto values = added.elements();
    group<Sum, group_size> results;
    group<To, group_size> casts;
    HOCKET_DETAIL_UNROLL
    for (std::size_t i = 0; i < group_size; ++i) {
      const Sum sum = addition.sum_of(sums.get(i), values.get(i));
      results.set(i, sum);
      casts.set(i, cast(sum));
    }
    store_group(addition.sum + first, results);
    store_group(to + first, casts);
  }

  HOCKET_HOST_DEVICE partition parts(std::size_t count) const {
    return cut(count, group_size, extent_of(addition.sum), extent_of(addition.from));
  }
};

HOCKET_BEGIN_LAUNCHERS

/// sum[i] += scale * from[i] for `count` elements, on `stream`.
///
/// Buffers: memory that the current device can access, valid until the stream has executed the call; no overlap. Cost:
/// reads both, writes `sum`. Order: the product is rounded, then the sum: the host's bits.
/// Errors: `errc::system`, with CUDA's message, if the kernel could not be launched.
template <class Sum, class From>
failure accumulate(::cuda::stream_ref stream, Sum* sum, const From* from, Sum scale, std::size_t count) {
  const accumulation<Sum, From> body{sum, from, scale};
  return launch("accumulate", body, body.parts(count), count * (2 * sizeof(Sum) + sizeof(From)), stream);
}

/// The same, followed by to[i] = cast_scale * sum[i]. `to` must not overlap the other buffers.
template <class Sum, class From, class To>
failure accumulate(::cuda::stream_ref stream, Sum* sum, const From* from, Sum scale, To* to, Sum cast_scale,
                   std::size_t count) {
  const accumulation_and_cast<Sum, From, To> body{{sum, from, scale}, to, cast_scale};
  return launch("accumulate", body, body.parts(count), count * (2 * sizeof(Sum) + sizeof(From) + sizeof(To)), stream);
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
