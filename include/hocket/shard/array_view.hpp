// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A view of a dense row-major array, with the members of std::mdspan that are possible in C++20: functions that
/// `apply` calls see a tensor's part through it. Also the concept of foreign views whose data a tensor can use.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE

namespace detail {

template <std::size_t Rank>
constexpr std::size_t row_major_stride(const std::array<std::size_t, Rank>& sizes, std::size_t dimension) noexcept {
  std::size_t product = 1;
  for (std::size_t d = dimension + 1; d < Rank; ++d) product *= sizes[d];
  return product;
}

}  // namespace detail

/// The extents of a view, with the members of std::extents; all are dynamic.
template <std::size_t Rank>
class view_extents {
 public:
  using index_type = std::size_t;
  using size_type = std::size_t;
  using rank_type = std::size_t;

  constexpr explicit view_extents(const std::array<std::size_t, Rank>& sizes) noexcept : sizes_(sizes) {}

  static constexpr rank_type rank() noexcept { return Rank; }
  static constexpr rank_type rank_dynamic() noexcept { return Rank; }
  static constexpr std::size_t static_extent(rank_type) noexcept { return std::dynamic_extent; }
  constexpr index_type extent(rank_type dimension) const noexcept { return sizes_[dimension]; }
  constexpr const std::array<std::size_t, Rank>& sizes() const noexcept { return sizes_; }

  friend constexpr bool operator==(const view_extents&, const view_extents&) = default;

 private:
  std::array<std::size_t, Rank> sizes_;
};

/// The layout of views, with the members of std::layout_right.
struct row_major {
  /// Maps indices to offsets.
  template <class Extents>
  class mapping {
   public:
    using extents_type = Extents;
    using index_type = typename Extents::index_type;
    using size_type = typename Extents::size_type;
    using rank_type = typename Extents::rank_type;
    using layout_type = row_major;

    constexpr explicit mapping(const Extents& extents) noexcept : extents_(extents) {}

    constexpr const Extents& extents() const noexcept { return extents_; }
    constexpr index_type stride(rank_type dimension) const noexcept {
      return detail::row_major_stride(extents_.sizes(), dimension);
    }
    constexpr index_type required_span_size() const noexcept {
      std::size_t product = 1;
      for (const std::size_t each : extents_.sizes()) product *= each;
      return product;
    }
    template <std::convertible_to<std::size_t>... Indices>
      requires(sizeof...(Indices) == Extents::rank())
    constexpr index_type operator()(Indices... indices) const noexcept {
      std::size_t offset = 0;
      std::size_t d = 0;
      ((offset = offset * extents_.extent(d++) + static_cast<std::size_t>(indices)), ...);
      return offset;
    }

    static constexpr bool is_always_unique() noexcept { return true; }
    static constexpr bool is_always_exhaustive() noexcept { return true; }
    static constexpr bool is_always_strided() noexcept { return true; }

    friend constexpr bool operator==(const mapping&, const mapping&) = default;

   private:
    Extents extents_;
  };
};

namespace detail {

template <std::size_t Rank, std::size_t Indices>
  requires(Rank != Indices)
constexpr auto why_not_indexed() {
  return make_explanation([]() -> sentence { return "a view takes as many indices as it has dimensions"; });
}

}  // namespace detail

/// A non-owning view. Elements are at row-major offsets from `data_handle()`.
template <class T, std::size_t Rank>
class array_view {
 public:
  using element_type = T;
  using value_type = std::remove_cv_t<T>;
  using index_type = std::size_t;
  using size_type = std::size_t;
  using rank_type = std::size_t;
  using data_handle_type = T*;
  using reference = T&;
  using sizes_type = std::array<std::size_t, Rank>;
  using extents_type = view_extents<Rank>;
  using layout_type = row_major;
  using mapping_type = row_major::mapping<extents_type>;

  constexpr array_view(T* data, const sizes_type& sizes) noexcept : data_(data), sizes_(sizes) {}

  static constexpr std::size_t rank() noexcept { return Rank; }
  static constexpr std::size_t rank_dynamic() noexcept { return Rank; }
  static constexpr std::size_t static_extent(std::size_t) noexcept { return std::dynamic_extent; }
  constexpr std::size_t extent(std::size_t dimension) const noexcept { return sizes_[dimension]; }
  constexpr extents_type extents() const noexcept { return extents_type(sizes_); }
  constexpr mapping_type mapping() const noexcept { return mapping_type(extents()); }
  constexpr const sizes_type& sizes() const noexcept { return sizes_; }
  constexpr T* data_handle() const noexcept { return data_; }

  constexpr std::size_t size() const noexcept {
    std::size_t product = 1;
    for (const std::size_t each : sizes_) product *= each;
    return product;
  }
  constexpr bool empty() const noexcept { return size() == 0; }

  constexpr std::size_t stride(std::size_t dimension) const noexcept {
    return detail::row_major_stride(sizes_, dimension);
  }

  template <std::convertible_to<std::size_t>... Indices>
    requires(sizeof...(Indices) == Rank)
  constexpr T& operator()(Indices... indices) const noexcept {
    return (*this)[sizes_type{static_cast<std::size_t>(indices)...}];
  }

  /// Deleted: the template argument `Why` is the reason.
  template <class... Indices, auto Why = detail::why_not_indexed<Rank, sizeof...(Indices)>()>
  T& operator()(const Indices&...) const = delete;

  constexpr T& operator[](const sizes_type& indices) const noexcept {
    std::size_t offset = 0;
    for (std::size_t d = 0; d < Rank; ++d) offset = offset * sizes_[d] + indices[d];
    return data_[offset];
  }
  /// Like the above, for indices of any type.
  template <std::convertible_to<std::size_t> Index>
  constexpr T& operator[](std::span<Index, Rank> indices) const noexcept {
    sizes_type at{};
    for (std::size_t d = 0; d < Rank; ++d) at[d] = static_cast<std::size_t>(indices[d]);
    return (*this)[at];
  }
  template <std::convertible_to<std::size_t> Index>
  constexpr T& operator[](const std::array<Index, Rank>& indices) const noexcept {
    return (*this)[std::span(indices)];
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

/// A type with the interface of std::mdspan for data, extents and strides.
template <class View>
concept mdspan_like = requires(const View& view, std::size_t d) {
  { view.data_handle() };
  { view.extent(static_cast<decltype(View::rank())>(d)) } -> std::convertible_to<std::size_t>;
  { view.stride(static_cast<decltype(View::rank())>(d)) } -> std::convertible_to<std::size_t>;
  { View::rank() } -> std::convertible_to<std::size_t>;
} && std::is_pointer_v<std::remove_cvref_t<decltype(std::declval<const View&>().data_handle())>>;

HOCKET_END_NAMESPACE
