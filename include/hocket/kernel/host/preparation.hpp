// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The loops before and after the combinations of a collective, for operations with `prepare` and `finish`: they
/// convert contributions to partial results, and partial results to results. Halves and bfloat16s are converted with
/// the vector instructions of the machine, with the same bits.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/kernel/host/vector_kernel.hpp>
#include <hocket/kernel/host/vector_operation.hpp>
#include <hocket/kernel/host/vectorize.hpp>
#include <hocket/operation/traits.hpp>

#include <cstddef>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace kernel {
namespace detail {

template <class Op, class T>
HOCKET_VECTORIZE void prepare_each(const Op& op, typename reduction<Op, T>::partial* to, const T* from,
                                   std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = reduction<Op, T>::prepare(op, from[i]);
}

template <class Op, class T>
HOCKET_VECTORIZE void finish_each(const Op& op, T* to, const typename reduction<Op, T>::partial* from, int ranks,
                                  std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = reduction<Op, T>::finish(op, from[i], ranks);
}

#if HOCKET_DETAIL_VECTOR_KERNELS

/// Returns false if there are too few elements. One of the types is float.
template <vector_conversion Conversion, class To, class From>
bool convert_elements(To* to, const From* from, std::size_t count, int ranks) {
  using narrow = std::conditional_t<Conversion == vector_conversion::decode, From, To>;
  return convert_vectors<narrow, Conversion>(reinterpret_cast<std::byte*>(to), reinterpret_cast<const std::byte*>(from),
                                             count, static_cast<float>(ranks));
}

#endif

}  // namespace detail

/// partials[i] = prepare(contributions[i]). The two must not overlap.
template <class Op, class T>
void prepare_elements(const void* op, std::byte* partials, const std::byte* contributions, std::size_t count) {
  auto* const to = reinterpret_cast<typename reduction<Op, T>::partial*>(partials);
  const auto* const from = reinterpret_cast<const T*>(contributions);
#if HOCKET_DETAIL_VECTOR_KERNELS
  constexpr auto conversion = detail::preparing_conversion<Op, T>;
  if constexpr (conversion == detail::vector_conversion::combine_twice) {
    const void* const twice[] = {contributions, contributions};
    using vectors = detail::vector_operation<Op, T>;
    constexpr auto order = detail::vector_order::from_left;
    return detail::combine_vectors<vectors::function, typename vectors::lane, order>(partials, twice, 2,
                                                                                     count * sizeof(T));
  } else if constexpr (conversion != detail::vector_conversion::other) {
    if (detail::convert_elements<conversion>(to, from, count, 1)) return;
  }
#endif
  detail::prepare_each<Op, T>(*static_cast<const Op*>(op), to, from, count);
}

/// results[i] = finish(partials[i], ranks). The two must not overlap.
template <class Op, class T>
void finish_elements(const void* op, std::byte* results, const std::byte* partials, int ranks, std::size_t count) {
  auto* const to = reinterpret_cast<T*>(results);
  const auto* const from = reinterpret_cast<const typename reduction<Op, T>::partial*>(partials);
#if HOCKET_DETAIL_VECTOR_KERNELS
  constexpr auto conversion = detail::finishing_conversion<Op, T>;
  if constexpr (conversion != detail::vector_conversion::other) {
    if (detail::convert_elements<conversion>(to, from, count, ranks)) return;
  }
#endif
  detail::finish_each<Op, T>(*static_cast<const Op*>(op), to, from, ranks, count);
}

}  // namespace kernel
HOCKET_END_NAMESPACE
