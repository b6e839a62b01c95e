// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Type traits, requires-expressions and concepts are false for constructions and calls of tensors that do not compile.

#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/group/allocate.hpp>
#include <hocket/group/local.hpp>
#include <hocket/group/shrink.hpp>
#include <hocket/group/split.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/operation/operations.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/change_mesh.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/cross_entropy.hpp>
#include <hocket/shard/layer/embedding.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/norm.hpp>
#include <hocket/shard/redistribute.hpp>
#include <hocket/shard/row_exchange.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/tensor.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace hocket;

using ranks = rank_mesh<local::domain, "dp", "tp">;
using others = rank_mesh<local::domain, "ep">;

template <class Placement, class T = float>
using vector_on_tp = tensor<T, extents<dynamic>, ranks, on<"tp", Placement>, elsewhere<replicated>>;
template <class Placement, class T = float>
using matrix_on_tp = tensor<T, extents<dynamic, dynamic>, ranks, on<"tp", Placement>, elsewhere<replicated>>;
using fixed = tensor<float, extents<4>, ranks, elsewhere<replicated>>;
using whole = vector_on_tp<replicated>;
using slice = vector_on_tp<shard<0>>;
using summand = vector_on_tp<partial<sum>>;
using invariant_whole = vector_on_tp<invariant>;

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

/// Two overloads, each of which accepts one type.
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

// ── convert ────────────────────────────────────────────────────────────────────────────────────────────────────────

template <axis_name Axis, class To, class Given>
concept converted = requires(Given&& given) { convert<Axis, To>(static_cast<Given&&>(given)); };
template <class To, class Given, class Options>
concept converted_with =
    requires(Given&& given, Options options) { convert<"tp", To>(static_cast<Given&&>(given), options); };
template <class Conversion, class Tensor>
concept done_by = requires(const Conversion& convert, const Tensor& tensor) { convert(tensor); };

template <class Given>
concept converted_the_wrong_way_round = requires(const Given& given) { convert<invariant, "tp">(given); };
template <class Given>
concept converted_along_two_axes = requires(const Given& given) { convert<"tp", invariant, "dp", invariant>(given); };
template <class Given>
concept converted_by_on = requires(const Given& given) { convert<on<"tp", invariant>>(given); };
template <class Given>
concept converted_to_a_number = requires(const Given& given) { convert<"tp", int>(given); };

static_assert(!converted<"tp", invariant, std::vector<float>>);
static_assert(converted<"tp", invariant, summand> && converted<"tp", shard<0>, const summand&>);
static_assert(converted<"tp", replicated, slice> && !converted<"pp", replicated, slice>);
static_assert(!converted<"tp", invariant, whole> && !converted<"tp", replicated, whole>);
static_assert(!converted<"tp", varying, slice> && !converted<"tp", partial<mean>, summand>);
static_assert(converted<"tp", shard<0>, whole> && !converted<"tp", shard<1>, whole> &&
              converted<"tp", shard<1>, matrix_on_tp<replicated>>);
static_assert(converted<"tp", replicated, vector_on_tp<partial<mean>>> &&
              !converted<"tp", replicated, vector_on_tp<partial<mean>, int>>);
using cut_twice = tensor<float, extents<dynamic>, ranks, on<"dp", shard<0>>, on<"tp", shard<0>>>;
static_assert(converted<"tp", replicated, cut_twice> && !converted<"dp", replicated, cut_twice>);
using maximum_on_dp = tensor<float, extents<dynamic>, ranks, on<"dp", partial<maximum>>, on<"tp", replicated>>;
static_assert(converted<"dp", replicated, maximum_on_dp> && !converted<"tp", partial<sum>, maximum_on_dp>);
static_assert(converted_with<invariant, summand, options<>> && !converted_with<invariant, summand, std::plus<>> &&
              !converted_with<invariant, std::vector<float>, options<>>);
static_assert(done_by<conversion<"tp", partial<sum>, invariant>, summand> &&
              !done_by<conversion<"tp", partial<sum>, invariant>, slice> &&
              !done_by<conversion<"tp", replicated, invariant>, whole> &&
              !done_by<conversion<"pp", partial<sum>, invariant>, summand>);
static_assert(!std::is_invocable_v<conversion<"tp", partial<sum>, invariant>, std::vector<float>> &&
              std::is_invocable_v<conversion<"tp", partial<sum>, invariant>, summand, options<>>);
static_assert(!converted_the_wrong_way_round<summand> && !converted_along_two_axes<summand> &&
              !converted_by_on<summand> && !converted_to_a_number<summand>);

// ── redistribute ───────────────────────────────────────────────────────────────────────────────────────────────────

template <class Given, class... Said>
concept redistributed = requires(Given&& given) { redistribute<Said...>(static_cast<Given&&>(given)); };
template <class Given, class... Said>
concept explained = requires(const Given& given) { explain_redistribution<Said...>(given); };
template <class Given, class To, class Mesh>
concept moved_to = requires(const Given& given, const Mesh& mesh) { redistribute<To>(given, mesh); };
template <class Given, class To, class Mesh>
concept move_explained = requires(const Given& given, const Mesh& mesh) { explain_redistribution<To>(given, mesh); };

static_assert(redistributed<slice, on<"tp", replicated>> && redistributed<slice, elsewhere<shard<0>>>);
static_assert(!redistributed<std::vector<float>, on<"tp", replicated>> && !redistributed<slice, replicated> &&
              !redistributed<slice, on<"tp", int>> && !redistributed<slice, on<"pp", replicated>> &&
              !redistributed<slice, on<"tp", replicated>, on<"tp", invariant>>);
static_assert(redistributed<slice, on<"tp", partial<sum>>> && !redistributed<invariant_whole, on<"tp", partial<sum>>> &&
              !redistributed<slice, on<"tp", partial<maximum>>> && !redistributed<slice, on<"tp", shard<1>>> &&
              !redistributed<summand, on<"tp", partial<maximum>>> && !redistributed<whole, on<"tp", invariant>>);
static_assert(!redistributed<vector_on_tp<partial<mean>, int>, on<"tp", replicated>> &&
              redistributed<vector_on_tp<partial<mean>, int>, on<"dp", shard<0>>>);
static_assert(explained<slice, on<"tp", partial<sum>>> && !explained<invariant_whole, on<"tp", partial<sum>>> &&
              !explained<std::vector<float>, on<"tp", replicated>>);

using on_others = tensor<float, extents<dynamic>, others, elsewhere<shard<0>>>;
using summand_on_others = tensor<float, extents<dynamic>, others, elsewhere<partial<sum>>>;
using doubles_on_others = tensor<double, extents<dynamic>, others, elsewhere<shard<0>>>;
static_assert(moved_to<slice, on_others, others> && !moved_to<slice, on_others, ranks> &&
              !redistributed<slice, on_others>);
static_assert(!moved_to<slice, summand_on_others, others> && !moved_to<slice, doubles_on_others, others> &&
              !moved_to<vector_on_tp<varying>, on_others, others> && !moved_to<std::vector<float>, on_others, others>);
static_assert(move_explained<slice, on_others, others> && !move_explained<slice, summand_on_others, others> &&
              !move_explained<slice, on_others, ranks>);

// ── apply, accumulate ──────────────────────────────────────────────────────────────────────────────────────────────

using computes = decltype([](const auto&...) {});
template <class Rule, class... Operands>
concept applied = requires(Operands&&... operands) { hocket::apply(Rule(), computes(), operands...); };
template <class Element, class Rule, class... Operands>
concept applied_as = requires(Operands&&... operands) { hocket::apply<Element>(Rule(), computes(), operands...); };
template <class Total, class Addend>
concept accumulated =
    requires(Total&& total, const Addend& addend) { accumulate(static_cast<Total&&>(total), addend); };
struct judges_when_running {
  static constexpr subscripts labels = "h->h";
  static rule_result result(std::span<const placement> operands) { return nonlinear<"h->h">::result(operands); }
};

static_assert(applied<nonlinear<"h->h">, whole> && !applied<nonlinear<"h->h">, summand> &&
              !applied<nonlinear<"H->H">, slice>);
static_assert(applied<linear<"h,h->h">, summand, summand> && !applied<linear<"h,h->h">, summand, whole>);
static_assert(!applied<nonlinear<"h->h">> && !applied<nonlinear<"h->h">, std::vector<float>> && !applied<int, whole>);
static_assert(!applied<nonlinear<"h->h">, whole, whole> && !applied<nonlinear<"th->th">, whole>);
static_assert(!applied<linear<"h,h->h">, whole, vector_on_tp<replicated, double>> &&
              applied_as<double, linear<"h,h->h">, whole, vector_on_tp<replicated, double>>);
static_assert(!applied<linear<"h,h->h">, slice, on_others>);
static_assert(!applied<judges_when_running, whole>);
static_assert(!std::is_invocable_v<
              decltype([](const auto& x) -> decltype(apply(nonlinear<"h->h">(), computes(), x)) {}), summand>);

static_assert(accumulated<whole&, whole> && accumulated<summand&, summand> && !accumulated<whole&, summand> &&
              !accumulated<whole, whole> && !accumulated<const whole&, whole>);
static_assert(!accumulated<whole&, float> && !accumulated<whole&, std::vector<float>> &&
              !accumulated<fixed&, on_others>);
static_assert(!accumulated<vector_on_tp<replicated, int>&, whole> && !accumulated<matrix_on_tp<replicated>&, whole> &&
              !accumulated<vector_on_tp<partial<mean>>&, vector_on_tp<partial<mean>>> &&
              !accumulated<vector_on_tp<replicated, const float>&, whole>);

// ── Norms, rows ────────────────────────────────────────────────────────────────────────────────────────────────────

template <class... Given>
concept has_norm = requires(Given&&... given) { norm(given...); };
template <class... Given>
concept has_squared_norm = requires(Given&&... given) { squared_norm(given...); };

static_assert(has_norm<whole> && has_norm<whole, slice> && has_norm<std::tuple<whole&, const slice&>, options<>>);
static_assert(!has_norm<> && !has_norm<std::vector<float>> && !has_norm<summand> && !has_norm<whole, summand>);
static_assert(!has_norm<std::tuple<whole&, summand&>> && !has_norm<whole, on_others> &&
              !has_norm<vector_on_tp<varying>>);
static_assert(has_squared_norm<whole> && !has_squared_norm<summand> && !has_squared_norm<whole, int>);

using counts_of_rows = std::vector<std::size_t>;
template <axis_name Axis, class... Given>
concept routed = requires(const Given&... given) { route_rows<Axis>(given...); };
template <class Given>
concept routed_along_nothing = requires(const Given& given, const counts_of_rows& sent) { route_rows(given, sent); };

static_assert(routed<"tp", slice, counts_of_rows> && routed<"tp", slice, counts_of_rows, counts_of_rows>);
static_assert(!routed<"pp", slice, counts_of_rows> && !routed<"tp", whole, counts_of_rows> &&
              !routed<"tp", slice, int> && !routed<"tp", std::vector<float>, counts_of_rows> &&
              !routed<"tp", cut_twice, counts_of_rows> && !routed_along_nothing<slice>);
using exchange_on_tp = row_exchange<"tp", shard<0>, varying>;
static_assert(std::is_invocable_v<exchange_on_tp, const slice&> && !std::is_invocable_v<exchange_on_tp, const whole&> &&
              !std::is_invocable_v<exchange_on_tp, const vector_on_tp<varying>&> &&
              !std::is_invocable_v<exchange_on_tp, std::vector<float>>);

// ── Layers ─────────────────────────────────────────────────────────────────────────────────────────────────────────

template <class Layer, class... Given>
concept has_forward = requires(const Layer& layer, Given&&... given) { layer.forward(given...); };
template <class Layer, class... Given>
concept has_backward = requires(const Layer& layer, Given&&... given) { layer.backward(given...); };
template <class Rows, class Bias>
concept has_bias = requires(const Rows& rows, const Bias& bias) { plus_bias(rows, bias); };

using column_parallel = column_parallel_linear<"tp">;
using row_parallel = row_parallel_linear<"tp">;
using embedding = vocabulary_parallel_embedding<"tp">;
using cross_entropy = vocabulary_parallel_cross_entropy<"tp">;
using token_numbers = vector_on_tp<invariant, int>;

static_assert(has_forward<column_parallel, computes, matrix_on_tp<replicated>, matrix_on_tp<shard<1>>> &&
              !has_forward<column_parallel, computes, matrix_on_tp<replicated>, matrix_on_tp<shard<0>>> &&
              !has_forward<column_parallel, matrix_on_tp<replicated>, matrix_on_tp<shard<1>>>);
static_assert(has_forward<row_parallel, computes, matrix_on_tp<shard<1>>, matrix_on_tp<shard<0>>> &&
              !has_forward<row_parallel, computes, matrix_on_tp<replicated>, matrix_on_tp<shard<0>>> &&
              !has_backward<row_parallel, computes, whole, matrix_on_tp<shard<0>>, matrix_on_tp<invariant>>);
static_assert(has_forward<embedding, token_numbers, matrix_on_tp<shard<0>>> &&
              !has_forward<embedding, vector_on_tp<invariant>, matrix_on_tp<shard<0>>> &&
              !has_forward<embedding, matrix_on_tp<shard<0>>, token_numbers>);
static_assert(has_forward<cross_entropy, matrix_on_tp<shard<1>>, token_numbers> &&
              !has_forward<cross_entropy, matrix_on_tp<replicated>, token_numbers> &&
              !has_backward<cross_entropy, whole>);
static_assert(has_bias<matrix_on_tp<replicated>, whole> && !has_bias<matrix_on_tp<partial<sum>>, whole> &&
              !has_bias<matrix_on_tp<replicated>, std::vector<float>>);

// ── Meshes and communicators ───────────────────────────────────────────────────────────────────────────────────────

using comm = local::communicator;
template <class... Given>
concept makes_mesh = requires(const Given&... given) { mesh<"dp", "tp">(given...); };
template <class Comm>
concept makes_mesh_of_a_list = requires(const Comm& comm) {
  mesh<"dp", "tp">(comm, {2, 3});
};
template <class Comm>
concept makes_mesh_of_a_list_first = requires(const Comm& comm) {
  mesh<"dp", "tp">({2, 3}, comm);
};
template <axis_name... Names>
concept has_group_along = requires(const ranks& mesh) { mesh.along<Names...>(); };
template <axis_name Name>
concept has_axis_of_name = requires(const ranks& mesh) {
  mesh.extent<Name>();
  mesh.coordinate<Name>();
};

static_assert(makes_mesh<comm> && makes_mesh<comm, std::vector<int>> && makes_mesh_of_a_list<comm>);
static_assert(!makes_mesh<comm, int, int> && !makes_mesh<comm, std::string> && !makes_mesh<int> &&
              !makes_mesh<std::vector<int>, comm> && !makes_mesh_of_a_list_first<comm>);
static_assert(has_group_along<"dp"> && has_group_along<"dp", "tp"> && !has_group_along<> && !has_group_along<"pp"> &&
              !has_group_along<"dp", "pp">);
static_assert(has_axis_of_name<"tp"> && !has_axis_of_name<"pp">);

template <class... Given>
concept splits = requires(const comm& whole, Given... given) { split(whole, given...); };
template <class... Given>
concept shrinks = requires(const comm& whole, Given... given) { shrink(whole, given...); };
template <class Given>
concept limits_time = requires(comm& whole, Given given) { whole.set_timeout(given); };
template <class T>
concept allocates = requires(const comm& whole) { allocate<T>(whole, 4); };

static_assert(splits<color> && splits<color, key> && !splits<int> && !splits<color, int> && !splits<>);
static_assert(shrinks<> && shrinks<options<>> && shrinks<decltype(with(timeout(std::chrono::seconds(1))))> &&
              !shrinks<int> && !shrinks<decltype(with(ring))>);
static_assert(limits_time<std::chrono::seconds> && !limits_time<int> && !limits_time<double>);
static_assert(allocates<float> && !allocates<std::string>);

}  // namespace
