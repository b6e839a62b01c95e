// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Finds the k largest elements of a device buffer and their indices, by value or by magnitude: the part that is sent
/// of a sparsified gradient.
///
/// Elements become unsigned keys of the same order, which CUB's radix sort sorts together with their indices; CCCL 3.0
/// has no selection of the k largest. The sort is stable: of equal elements, those with smaller indices come first, in
/// every run. NaNs come before all others, so that they can't go unnoticed; zeros of both signs are equal.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/text.hpp>
#include <hocket/kernel/device/launch.cuh>
#include <hocket/kernel/device/partition.hpp>
#include <hocket/kernel/device/workspace.hpp>
#include <hocket/scalar/traits.hpp>

#include <cub/device/device_radix_sort.cuh>
#include <cuda/stream_ref>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace device {

/// Which elements are the largest.
enum class ranking {
  value,     ///< 3 is before 2, and 2 before -4
  magnitude  ///< -4 is before 3
};

/// Unsigned keys in the order of elements of T. One kernel sorts all keys of up to 4 bytes, whatever the type.
template <class T, ranking By>
struct ordered_key {
  static_assert((std::is_integral_v<T> || is_floating<T>)&&!std::is_same_v<T, bool> && sizeof(T) <= 8,
                "hocket: top_k takes only integers and floating-point numbers of up to 8 bytes");
  using type = std::conditional_t<sizeof(T) <= 4, std::uint32_t, std::uint64_t>;
  static constexpr int bits = 8 * static_cast<int>(sizeof(T));
  static constexpr type sign = type{1} << (bits - 1);
  static constexpr type all = sign | (sign - 1);

  HOCKET_HOST_DEVICE static type of(const T& value) {
    if constexpr (is_floating<T>) {
      if (!(value == value)) return all;  // NOLINT: NaN
    }
    const type image = image_of(value);
    const bool negative = (std::is_signed_v<T> || is_floating<T>)&&(image & sign) != 0;
    if constexpr (By == ranking::magnitude) {
      if (!negative) return image;
      return is_floating<T> ? image ^ sign : (~image + 1) & all;
    } else if constexpr (is_floating<T>) {
      if (image == sign) return sign;  // -0
      return negative ? ~image & all : image | sign;
    } else {
      return std::is_signed_v<T> ? image ^ sign : image;
    }
  }

 private:
  HOCKET_HOST_DEVICE static type image_of(const T& value) {
    using image =
        std::conditional_t<sizeof(T) == 1, std::uint8_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                              std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;
    return __builtin_bit_cast(image, value);
  }
};

/// keys[i] = key of from[i], order[i] = i
template <class T, class Index, ranking By>
struct key_making {
  using key = ordered_key<T, By>;

  typename key::type* keys;
  Index* order;
  const T* from;

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const {
    keys[i] = key::of(from[i]);
    order[i] = static_cast<Index>(i);
  }
  HOCKET_HOST_DEVICE void on_group(std::size_t) const {}
};

/// values[i] = from[order[i]], indices[i] = order[i]
template <class T, class Index>
struct gathering {
  T* values;
  Index* indices;
  const T* from;
  const Index* order;

  HOCKET_HOST_DEVICE void on_element(std::size_t i) const {
    const Index at = order[i];
    values[i] = from[at];
    indices[i] = at;
  }
  HOCKET_HOST_DEVICE void on_group(std::size_t) const {}
};

HOCKET_BEGIN_LAUNCHERS

namespace selecting {

/// How a workspace is divided: two buffers of keys and two of indices for the sort, and its temporary storage.
struct layout {
  std::size_t keys_at[2] = {};
  std::size_t order_at[2] = {};
  std::size_t temporary_at = 0;
  std::size_t sort_bytes = 0;
  std::size_t bytes = 0;
};

template <class Key, class Index>
cudaError_t sort(void* temporary, std::size_t& bytes, cub::DoubleBuffer<Key>& keys, cub::DoubleBuffer<Index>& order,
                 std::size_t count, int bits, cudaStream_t stream) {
  return cub::DeviceRadixSort::SortPairsDescending(temporary, bytes, keys, order, count, 0, bits, stream);
}

template <class Key, class Index>
cudaError_t find_layout(std::size_t count, int bits, layout& result) {
  cub::DoubleBuffer<Key> no_keys;
  cub::DoubleBuffer<Index> no_order;
  const cudaError_t status = sort(nullptr, result.sort_bytes, no_keys, no_order, count, bits, nullptr);
  workspace_cut cut;
  for (std::size_t& at : result.keys_at) at = cut.take(count * sizeof(Key));
  for (std::size_t& at : result.order_at) at = cut.take(count * sizeof(Index));
  result.temporary_at = cut.take(result.sort_bytes);
  result.bytes = cut.bytes();
  return status;
}

/// A partition without groups.
inline partition elements(std::size_t count) { return {count, count, 0, 1}; }

}  // namespace selecting

/// Sets `bytes` to the size of the workspace that `top_k` needs for `count` elements of T, for any k.
/// Errors: `errc::system`, with CUDA's message, without a device.
template <class T, class Index>
failure top_k_workspace(std::size_t count, std::size_t& bytes) {
  using key = ordered_key<T, ranking::value>;
  bytes = 0;
  if (count == 0) return {};
  selecting::layout at;
  const cudaError_t status = selecting::find_layout<typename key::type, Index>(count, key::bits, at);
  bytes = at.bytes;
  return failure_of(status, "top_k");
}

/// Writes the k largest of the `count` elements of `from` to `values`, the largest first, and their indices in `from`
/// to `indices`, on `stream`.
///
/// Buffers: memory that the current device can access, valid until the stream has executed the call; they do not
/// overlap. k is at most `count`, and indices fit into `Index`.
/// Cost: a sort: about as many passes over keys and indices as T has bytes. Order: the same in every run, see above.
/// Errors: `errc::invalid_argument` if k or `count` is too large, or the workspace is too small or does not begin at a
/// multiple of 256; `errc::system`, with CUDA's message, if a kernel could not be launched.
template <ranking By = ranking::value, class T, class Index>
failure top_k(::cuda::stream_ref stream, const workspace& lent, T* values, Index* indices, std::size_t k, const T* from,
              std::size_t count) {
  static_assert(std::is_same_v<Index, std::uint32_t> || std::is_same_v<Index, std::uint64_t>,
                "hocket: indices must be std::uint32_t or std::uint64_t");
  using making = key_making<T, Index, By>;
  using key = typename making::key;
  if (k > count) {
    return make_failure(errc::invalid_argument,
                        hocket::detail::concat({"k is ", k, ", but the buffer has only ", count, " elements"}),
                        {.operation = "top_k"});
  }
  if (count != 0 && count - 1 > std::numeric_limits<Index>::max()) {
    return make_failure(errc::invalid_argument,
                        "32-bit indices are too small for this many elements; use std::uint64_t",
                        {.operation = "top_k"});
  }
  if (k == 0) return {};
  selecting::layout at;
  cudaError_t status = selecting::find_layout<typename key::type, Index>(count, key::bits, at);
  if (status != cudaSuccess) return failure_of(status, "top_k");
  if (failure wrong = check_workspace(lent, at.bytes, "top_k")) return wrong;

  using key_type = typename key::type;
  cub::DoubleBuffer<key_type> keys(array_of<key_type>(lent, at.keys_at[0]), array_of<key_type>(lent, at.keys_at[1]));
  cub::DoubleBuffer<Index> order(array_of<Index>(lent, at.order_at[0]), array_of<Index>(lent, at.order_at[1]));
  failure wrong = launch("top_k", making{keys.Current(), order.Current(), from}, selecting::elements(count),
                         count * (sizeof(T) + sizeof(key_type) + sizeof(Index)), stream);
  if (wrong) return wrong;
  status = selecting::sort(array_of<void>(lent, at.temporary_at), at.sort_bytes, keys, order, count, key::bits,
                           stream.get());
  if (status != cudaSuccess) return failure_of(status, "top_k");
  return launch("top_k", gathering<T, Index>{values, indices, from, order.Current()}, selecting::elements(k),
                2 * k * (sizeof(T) + sizeof(Index)), stream);
}

HOCKET_END_LAUNCHERS

}  // namespace device
}  // namespace kernel
HOCKET_END_NAMESPACE
