// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The placements of results of local mathematics and of conversions. The backward pass of every conversion is that of
// the table in shard/convert.hpp.
#include <hocket/group/local.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/redistribute.hpp>

#include <type_traits>
#include <utility>

namespace {

using namespace hocket;
using ranks = rank_mesh<local::domain, "dp", axis("tp", 4)>;

template <class Extents, class Dp, class Tp>
using placed = tensor<float, Extents, ranks, on<"dp", Dp>, on<"tp", Tp>>;
template <class Dp, class Tp>
using matrix = placed<extents<dynamic, 512>, Dp, Tp>;
template <class Dp, class Tp>
using weight = placed<extents<512, 2048>, Dp, Tp>;

// ── Extents of axes ────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(detail::axis_list<"dp", axis("tp", 1)>::extents_are_positive());
static_assert(!detail::axis_list<"dp", axis("tp", 0)>::extents_are_positive());
static_assert(!detail::axis_list<axis("dp", inferred)>::extents_are_positive());
static_assert(axis("dp") != axis("dp", 0));

// ── Placements along axes ──────────────────────────────────────────────────────────────────────────────────────────

static_assert(std::is_same_v<tensor<float, extents<4>, ranks, on<"tp", shard<0>>, elsewhere<replicated>>,
                             placed<extents<4>, replicated, shard<0>>>);
static_assert(std::is_same_v<tensor<float, extents<4>, ranks, elsewhere<replicated>, on<"tp", shard<0>>>,
                             placed<extents<4>, replicated, shard<0>>>);
static_assert(std::is_same_v<tensor<float, extents<4>, ranks, on<"tp", shard<0>>, on<"dp", invariant>>,
                             placed<extents<4>, invariant, shard<0>>>);
static_assert(std::is_same_v<matrix<shard<0>, replicated>::placement_on<"dp">, shard<0>>);
static_assert(std::is_same_v<gradient_t<matrix<replicated, shard<1>>>, matrix<partial<sum>, shard<1>>>);
static_assert(std::is_same_v<gradient_t<matrix<partial<sum>, invariant>>, matrix<replicated, invariant>>);
static_assert(tensor_type<matrix<replicated, varying>> && !tensor_type<ranks>);

// ── Overloads that accept a tensor ─────────────────────────────────────────────────────────────────────────────────

// A tensor of another placement is convertible only to explain the misuse: an overload that takes the tensor itself is
// preferred.
using summand = matrix<replicated, partial<sum>>;
using copied = matrix<replicated, replicated>;

struct takers {
  static int either(const copied&);
  static char either(const summand&);
  static int any(const copied&);
  template <class Any>
  static char any(const Any&);
};
static_assert(std::is_same_v<decltype(takers::either(std::declval<summand>())), char>);
static_assert(std::is_same_v<decltype(takers::either(std::declval<copied&>())), int>);
static_assert(std::is_same_v<decltype(takers::any(std::declval<summand>())), char>);
static_assert(std::is_same_v<decltype(takers::any(std::declval<copied>())), int>);

// Other types do not convert to tensors. Tensors can't be copied, but moved without exceptions.
static_assert(!std::is_convertible_v<ranks, copied> && !std::is_convertible_v<int, copied>);
static_assert(!std::is_constructible_v<copied, const copied&> && !std::is_assignable_v<copied&, const copied&>);
static_assert(std::is_nothrow_move_constructible_v<copied> && std::is_nothrow_move_assignable_v<copied>);

// ── Results of local mathematics ───────────────────────────────────────────────────────────────────────────────────

template <class Rule, class... Operands>
using result = typename detail::application<float, Rule, Operands...>::result_type;

static_assert(
    std::is_same_v<result<multilinear<"tk,kn->tn">, matrix<shard<0>, replicated>, weight<replicated, shard<1>>>,
                   placed<extents<dynamic, 2048>, shard<0>, shard<1>>>);
static_assert(std::is_same_v<result<multilinear<"tk,kn->tn">, matrix<shard<0>, shard<1>>, weight<replicated, shard<0>>>,
                             placed<extents<dynamic, 2048>, shard<0>, partial<sum>>>);
static_assert(std::is_same_v<result<multilinear<"tk,tn->kn">, matrix<shard<0>, replicated>, matrix<shard<0>, shard<1>>>,
                             placed<extents<512, 512>, partial<sum>, shard<1>>>);
static_assert(
    std::is_same_v<result<linear<"th->h">, matrix<shard<0>, shard<1>>>, placed<extents<512>, partial<sum>, shard<0>>>);
static_assert(std::is_same_v<result<maximum_over<"th->t">, matrix<shard<0>, shard<1>>>,
                             placed<extents<dynamic>, shard<0>, partial<maximum>>>);
static_assert(std::is_same_v<result<mean_over<"th->">, matrix<shard<0>, shard<1>>>,
                             placed<extents<>, partial<mean>, partial<mean>>>);
static_assert(std::is_same_v<result<nonlinear<"th->ht">, matrix<shard<0>, invariant>>,
                             placed<extents<512, dynamic>, shard<1>, invariant>>);
static_assert(std::is_same_v<result<nonlinear<"th,th->th">, matrix<varying, shard<0>>, matrix<replicated, shard<0>>>,
                             matrix<varying, shard<0>>>);

template <class Tensor, class Rule, class... Operands>
constexpr bool applies_to =
    std::is_same_v<decltype(apply(
                       std::declval<Rule>(), [](const auto&...) {}, std::declval<const Operands&>()...)),
                   Tensor>;
static_assert(applies_to<matrix<shard<0>, partial<sum>>, linear<"th,th->th">, matrix<shard<0>, partial<sum>>,
                         matrix<shard<0>, partial<sum>>>);

// ── Results of conversions and redistributions ─────────────────────────────────────────────────────────────────────

template <class To, class From>
using converted = decltype(convert<"tp", To>(std::declval<From>()));

static_assert(std::is_same_v<converted<invariant, matrix<shard<0>, partial<sum>>>, matrix<shard<0>, invariant>>);
static_assert(std::is_same_v<converted<shard<1>, matrix<shard<0>, replicated>>, matrix<shard<0>, shard<1>>>);
static_assert(std::is_same_v<converted<replicated, matrix<varying, partial<maximum>>>, matrix<varying, replicated>>);
static_assert(std::is_same_v<converted<replicated, tensor<const float, extents<512>, ranks, elsewhere<invariant>>>,
                             tensor<const float, extents<512>, ranks, on<"dp", invariant>, on<"tp", replicated>>>);
static_assert(std::is_same_v<decltype(redistribute<on<"dp", shard<1>>, on<"tp", replicated>>(
                                 std::declval<matrix<shard<0>, shard<0>>>())),
                             matrix<shard<1>, replicated>>);

// ── The backward conversion, and the kinds of both conversions ─────────────────────────────────────────────────────

using step = detail::conversion_kind;

template <class From, class To, step Forward, class BackwardFrom, class BackwardTo, step Backward>
constexpr bool turns_round() {
  using forward = conversion<"tp", From, To>;
  using backward = backward_t<forward>;
  return forward::allowed && backward::allowed && forward::kind == Forward && backward::kind == Backward &&
         std::is_same_v<backward, conversion<"tp", BackwardFrom, BackwardTo>> &&
         std::is_same_v<backward_t<backward>, forward>;
}

using part = partial<sum>;
static_assert(turns_round<invariant, replicated, step::nothing, part, invariant, step::reduce_to_all>());
static_assert(turns_round<invariant, shard<0>, step::slice, shard<0>, invariant, step::gather_to_all>());
static_assert(turns_round<replicated, shard<0>, step::slice, shard<0>, part, step::pad_with_zeros>());
static_assert(turns_round<replicated, varying, step::nothing, varying, part, step::nothing>());
static_assert(turns_round<replicated, part, step::keep_on_first, replicated, part, step::keep_on_first>());
static_assert(turns_round<shard<0>, replicated, step::gather_to_all, part, shard<0>, step::reduce_to_slices>());
static_assert(turns_round<shard<0>, invariant, step::gather_to_all, invariant, shard<0>, step::slice>());
static_assert(turns_round<shard<0>, shard<1>, step::exchange, shard<1>, shard<0>, step::exchange>());
static_assert(turns_round<shard<0>, part, step::pad_with_zeros, replicated, shard<0>, step::slice>());
static_assert(turns_round<varying, part, step::nothing, replicated, varying, step::nothing>());
static_assert(turns_round<part, replicated, step::reduce_to_all, part, replicated, step::reduce_to_all>());
static_assert(turns_round<part, invariant, step::reduce_to_all, invariant, replicated, step::nothing>());
static_assert(turns_round<part, shard<1>, step::reduce_to_slices, shard<1>, replicated, step::gather_to_all>());

static_assert(conversion<"tp", partial<maximum>, replicated>::kind == step::reduce_to_all);
static_assert(conversion<"tp", partial<mean>, shard<0>>::kind == step::reduce_to_slices);
static_assert(!conversion<"tp", partial<maximum>, partial<maximum>>::allowed);
static_assert(!conversion<"tp", part, partial<mean>>::allowed);
static_assert(!conversion<"tp", replicated, invariant>::allowed);

}  // namespace
