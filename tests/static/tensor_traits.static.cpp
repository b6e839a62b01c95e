// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Type traits, requires-expressions and concepts are told the truth about tensors: what does not compile can't be made,
// converted, assigned or called.

#include <hocket/shard/tensor.hpp>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace hocket;

/// A mesh for types alone, as including a real one costs the compiler seconds.
template <axis... Axes>
struct mesh_in_types {
  using axes = hocket::detail::axis_list<Axes...>;
  static constexpr int dimensions = axes::size;
  using extents_type = std::array<int, sizeof...(Axes)>;

  const extents_type& extents() const;
  const extents_type& coordinates() const;
  int rank() const;
  int size() const;
  bool moved_from() const;
  bool operator==(const mesh_in_types&) const;
};
using ranks = mesh_in_types<"dp", "tp">;
using others = mesh_in_types<"ep">;

template <class Placement, class T = float>
using vector_on_tp = tensor<T, extents<dynamic>, ranks, on<"tp", Placement>, elsewhere<replicated>>;
template <class Placement, class T = float>
using matrix_on_tp = tensor<T, extents<dynamic, dynamic>, ranks, on<"tp", Placement>, elsewhere<replicated>>;
using fixed = tensor<float, extents<4>, ranks, elsewhere<replicated>>;
using whole = vector_on_tp<replicated>;
using slice = vector_on_tp<shard<0>>;
using summand = vector_on_tp<partial<sum>>;

// ── From tensor to tensor ──────────────────────────────────────────────────────────────────────────────────────────

static_assert(!std::is_convertible_v<slice, whole>);
static_assert(!std::is_convertible_v<summand, whole> && !std::is_convertible_v<const summand&, whole>);
static_assert(!std::is_constructible_v<whole, summand> && !std::is_constructible_v<whole, summand&>);
static_assert(!std::is_assignable_v<whole&, summand> && !std::is_assignable_v<whole&, const slice&>);
static_assert(!std::is_convertible_v<vector_on_tp<replicated, int>, whole> && !std::is_convertible_v<fixed, whole>);
static_assert(!std::is_convertible_v<tensor<float, extents<dynamic>, others, elsewhere<replicated>>, whole>);
static_assert(!std::is_invocable_v<void (*)(whole), summand> && !std::is_invocable_r_v<whole, summand (*)()>);
static_assert(std::is_convertible_v<whole, whole> && std::is_constructible_v<whole, whole>);
static_assert(std::is_nothrow_move_constructible_v<slice> && std::is_nothrow_move_assignable_v<slice>);
static_assert(!std::is_copy_constructible_v<whole> && !std::is_copy_assignable_v<whole>);
static_assert(std::is_invocable_v<void (*)(whole), whole> && std::is_invocable_v<void (*)(const whole&), whole>);

/// Takes what fits: the overloads of a program.
struct overloaded {
  int operator()(const whole&) const;
  char operator()(const summand&) const;
};
static_assert(std::is_same_v<std::invoke_result_t<overloaded, summand>, char>);

// ── On a mesh, with extents ────────────────────────────────────────────────────────────────────────────────────────

template <class Tensor>
concept made_of_no_extents = requires(const ranks& mesh) { Tensor(mesh, {}); };
template <class Tensor>
concept made_of_one_extent = requires(const ranks& mesh) { Tensor(mesh, {3}); };
template <class Tensor>
concept made_of_two_extents = requires(const ranks& mesh) {
  Tensor(mesh, {3, 2});
};
template <class Tensor>
concept made_of_fractions = requires(const ranks& mesh) { Tensor(mesh, {4.5}); };

static_assert(!std::is_default_constructible_v<whole>);
static_assert(!std::is_constructible_v<whole, const ranks&> && std::is_constructible_v<fixed, const ranks&>);
static_assert(!std::is_convertible_v<const ranks&, fixed>);
static_assert(!std::is_constructible_v<fixed, const others&>);
static_assert(made_of_one_extent<whole> && made_of_two_extents<matrix_on_tp<replicated>> && made_of_no_extents<fixed>);
static_assert(!made_of_no_extents<whole> && !made_of_two_extents<whole> && !made_of_one_extent<fixed>);
static_assert(!made_of_one_extent<matrix_on_tp<replicated>>);
static_assert(!made_of_fractions<whole> && !std::is_constructible_v<whole, const ranks&, double>);
static_assert(std::is_constructible_v<whole, const ranks&, int> && !std::is_constructible_v<fixed, const ranks&, int>);
static_assert(std::is_constructible_v<whole, const ranks&, std::array<std::size_t, 1>> &&
              !std::is_constructible_v<whole, const ranks&, std::array<std::size_t, 2>> &&
              !std::is_constructible_v<whole, const ranks&, std::array<int, 1>>);
static_assert(std::is_constructible_v<whole, const ranks&, std::span<const std::size_t>>);
static_assert(!std::is_constructible_v<whole, const ranks&, std::string> &&
              !std::is_constructible_v<whole, const ranks&, std::vector<int>>);
static_assert(!std::is_constructible_v<matrix_on_tp<replicated>, const ranks&, int, int>);
static_assert(!std::is_constructible_v<whole, std::array<std::size_t, 1>, const ranks&>);

// ── In storage ─────────────────────────────────────────────────────────────────────────────────────────────────────

using one = std::array<std::size_t, 1>;
static_assert(std::is_constructible_v<whole, const ranks&, one, std::span<float>> &&
              std::is_constructible_v<whole, const ranks&, one, std::vector<float>&>);
static_assert(!std::is_constructible_v<whole, const ranks&, one, float*>);
static_assert(!std::is_constructible_v<whole, const ranks&, one, std::vector<double>&> &&
              !std::is_constructible_v<whole, const ranks&, one, const std::vector<float>&> &&
              !std::is_constructible_v<whole, const ranks&, one, std::vector<float>>);
static_assert(
    std::is_constructible_v<vector_on_tp<replicated, const float>, const ranks&, one, std::span<const float>>);
static_assert(std::is_constructible_v<whole, const ranks&, one, array_view<float, 1>>);
static_assert(!std::is_constructible_v<whole, const ranks&, one, array_view<float, 2>> &&
              !std::is_constructible_v<whole, const ranks&, one, array_view<const float, 1>>);
static_assert(!std::is_constructible_v<fixed, const ranks&, std::vector<float>&> &&
              !std::is_constructible_v<whole, const ranks&, std::vector<float>&, one>);

// ── copy, borrow, fill ─────────────────────────────────────────────────────────────────────────────────────────────

template <class Given>
concept copied = requires(const Given& given) { hocket::copy(given); };
template <class Given>
concept borrowed = requires(Given&& given) { borrow(static_cast<Given&&>(given)); };
template <class Given, class Value>
concept filled = requires(Given&& given, Value value) { hocket::fill(static_cast<Given&&>(given), value); };
using of_indices = decltype([](const auto& at) { return static_cast<float>(at[0]); });

static_assert(copied<whole> && !copied<std::vector<float>>);
static_assert(borrowed<whole&> && borrowed<const whole&> && !borrowed<whole> && !borrowed<const whole>);
static_assert(filled<whole&, of_indices> && !filled<whole&, float>);
static_assert(!filled<whole, of_indices> && !filled<const whole&, of_indices> &&
              !filled<vector_on_tp<replicated, const float>&, of_indices> && !filled<std::vector<float>&, of_indices>);

}  // namespace
