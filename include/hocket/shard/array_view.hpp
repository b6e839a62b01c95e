// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A view of a dense row-major array, with the members of std::mdspan that C++20 code can have: what local mathematics
/// gets to see of a tensor. Also what counts as a view of others' making that hocket can adopt.
#pragma once

#include <hocket/core/config.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

/// Non-owning. Elements are at row-major offsets from `data_handle()`.
template <class T, std::size_t Rank>
class array_view {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using index_type = std::size_t;
  using data_handle_type = T*;
  using sizes_type = std::array<std::size_t, Rank>;

  constexpr array_view(T* data, const sizes_type& sizes) noexcept : data_(data), sizes_(sizes) {}

  static constexpr std::size_t rank() noexcept { return Rank; }
  constexpr std::size_t extent(std::size_t dimension) const noexcept { return sizes_[dimension]; }
  constexpr const sizes_type& sizes() const noexcept { return sizes_; }
  constexpr T* data_handle() const noexcept { return data_; }

  constexpr std::size_t size() const noexcept {
    std::size_t product = 1;
    for (const std::size_t each : sizes_) product *= each;
    return product;
  }
  constexpr bool empty() const noexcept { return size() == 0; }

  constexpr std::size_t stride(std::size_t dimension) const noexcept {
    std::size_t product = 1;
    for (std::size_t d = dimension + 1; d < Rank; ++d) product *= sizes_[d];
    return product;
  }

  template <std::convertible_to<std::size_t>... Indices>
    requires(sizeof...(Indices) == Rank)
  constexpr T& operator()(Indices... indices) const noexcept {
    return (*this)[sizes_type{static_cast<std::size_t>(indices)...}];
  }

  /// Does not compile: see what it says.
  template <class... Indices>
    requires(sizeof...(Indices) != Rank)
  constexpr T& operator()(const Indices&...) const noexcept {
    static_assert(sizeof...(Indices) == Rank, "a view takes as many indices as it has dimensions");
    return *data_;
  }

  constexpr T& operator[](const sizes_type& indices) const noexcept {
    std::size_t offset = 0;
    for (std::size_t d = 0; d < Rank; ++d) offset = offset * sizes_[d] + indices[d];
    return data_[offset];
  }

  /// All elements, in row-major order.
  constexpr std::span<T> elements() const noexcept { return {data_, size()}; }

 private:
  T* data_;
  sizes_type sizes_;
};

/// Calls `visit(indices)` for all indices of an array of these sizes, in row-major order.
template <std::size_t Rank, class Visit>
constexpr void for_each_index(const std::array<std::size_t, Rank>& sizes, Visit&& visit) {
  for (const std::size_t each : sizes) {
    if (each == 0) return;
  }
  std::array<std::size_t, Rank> at{};
  for (;;) {
    visit(static_cast<const std::array<std::size_t, Rank>&>(at));
    std::size_t d = Rank;
    while (d > 0 && ++at[d - 1] == sizes[d - 1]) at[--d] = 0;
    if (d == 0) return;
  }
}

/// What looks like std::mdspan: data, extents and strides, as any type of the kind has.
template <class View>
concept mdspan_like = requires(const View& view, std::size_t d) {
  { view.data_handle() };
  { view.extent(static_cast<decltype(View::rank())>(d)) } -> std::convertible_to<std::size_t>;
  { view.stride(static_cast<decltype(View::rank())>(d)) } -> std::convertible_to<std::size_t>;
  { View::rank() } -> std::convertible_to<std::size_t>;
} && std::is_pointer_v<std::remove_cvref_t<decltype(std::declval<const View&>().data_handle())>>;

HOCKET_END_NAMESPACE
