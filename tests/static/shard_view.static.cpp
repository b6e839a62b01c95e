// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Code that is written for std::mdspan compiles with array_view, and gets the same values.
#include <hocket/shard/array_view.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>

namespace {

using hocket::array_view;

// ── Code for std::mdspan and array_view ────────────────────────────────────────────────────────────────────────────

template <class View>
constexpr typename View::size_type volume_of(const View& view) {
  using extents_type = typename View::extents_type;
  static_assert(extents_type::rank() == View::rank() && extents_type::rank_dynamic() == View::rank_dynamic());
  typename View::size_type product = 1;
  for (typename View::rank_type d = 0; d < extents_type::rank(); ++d) {
    const bool known = extents_type::static_extent(d) != std::dynamic_extent;
    product *= known ? View::static_extent(d) : view.extents().extent(d);
  }
  return product;
}

template <class View>
constexpr typename View::value_type trace_of(const View& matrix) {
  using index_type = typename View::extents_type::index_type;
  typename View::value_type sum{};
  for (index_type i = 0; i < matrix.extents().extent(0); ++i) sum += matrix[std::array{i, i}];
  return sum;
}

/// Uses only the mapping, like code that has pointers.
template <class View>
constexpr typename View::reference last_of(const View& matrix) {
  using mapping_type = typename View::layout_type::template mapping<typename View::extents_type>;
  static_assert(std::is_same_v<mapping_type, typename View::mapping_type>);
  static_assert(mapping_type::is_always_unique() && mapping_type::is_always_exhaustive() &&
                mapping_type::is_always_strided());
  const mapping_type mapping(matrix.extents());
  return matrix.data_handle()[mapping(mapping.extents().extent(0) - 1, mapping.extents().extent(1) - 1)];
}

// ── Results ────────────────────────────────────────────────────────────────────────────────────────────────────────

constexpr std::array<int, 12> numbers{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
constexpr array_view<const int, 2> rows(numbers.data(), {3, 4});
constexpr array_view<const int, 3> blocks(numbers.data(), {2, 3, 2});
constexpr array_view<const int, 0> scalar(numbers.data(), {});

static_assert(volume_of(rows) == 12 && volume_of(blocks) == 12 && volume_of(scalar) == 1);
static_assert(trace_of(rows) == 1 + 6 + 11);
static_assert(last_of(rows) == 12);
static_assert(rows.mapping().stride(0) == 4 && rows.mapping().stride(1) == 1 && blocks.mapping().stride(0) == 6);
static_assert(rows.mapping().required_span_size() == 12 && scalar.mapping().required_span_size() == 1);
static_assert(blocks.mapping()(1, 2, 0) == 10 && scalar.mapping()() == 0);
static_assert(rows.extents() == rows.mapping().extents() && rows.mapping() == rows.mapping());
static_assert(rows.extents() != array_view<const int, 2>(numbers.data(), {4, 3}).extents());

template <class Index>
constexpr bool indexed_by() {
  std::array<Index, 3> at{1, 2, 0};
  return blocks[at] == 11 && blocks[std::span(at)] == 11 && blocks[std::span<const Index, 3>(at)] == 11;
}
static_assert(indexed_by<int>() && indexed_by<unsigned char>() && indexed_by<long long>() && indexed_by<std::size_t>());
static_assert(blocks[{1, 2, 0}] == 11 && scalar[std::array<int, 0>{}] == 1);

static_assert(hocket::mdspan_like<array_view<float, 2>> && hocket::mdspan_like<array_view<const float, 0>>);

}  // namespace
