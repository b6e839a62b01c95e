// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The verdicts of all rules on placements, and which placement can become which, as constant expressions.
// tests/repository/shard_mutations.cmake removes each refusal from the headers once; then this file must not compile.
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/extents.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>

#include <array>
#include <type_traits>

namespace {

using namespace hocket;
using kind = placement_kind;

constexpr placement R{kind::replicated};
constexpr placement I{kind::invariant};
constexpr placement V{kind::varying};
constexpr placement P{kind::partial_sum};
constexpr placement M{kind::partial_mean};
constexpr placement X{kind::partial_other};
constexpr placement S(int dimension) { return {kind::shard, dimension}; }

template <class Rule, class... Operands>
constexpr bool gives(placement expected, Operands... operands) {
  const placement all[]{operands...};
  const rule_result judged = Rule::result(all);
  return judged.allowed() && judged.result == expected;
}

template <class Rule, class... Operands>
constexpr bool refuses(misuse expected, Operands... operands) {
  const placement all[]{operands...};
  return Rule::result(all).why == expected;
}

// ── Common to all rules, without partial operands ──────────────────────────────────────────────────────────────────

/// `Two` is a rule for "th,th->th", `Row` for "th,h->th", `Whole` for "tH,tH->tH".
template <class Two, class Row, class Whole>
constexpr bool judges_unreduced() {
  return gives<Two>(R, R, R) && gives<Two>(I, I, I) && gives<Two>(V, V, V) && gives<Two>(V, R, V) &&
         gives<Two>(V, V, R) && gives<Two>(S(0), S(0), S(0)) && gives<Two>(S(1), S(1), S(1)) &&
         refuses<Two>(misuse::invariant_with_others, I, R) && refuses<Two>(misuse::invariant_with_others, R, I) &&
         refuses<Two>(misuse::invariant_with_others, I, V) && refuses<Two>(misuse::invariant_with_others, I, S(0)) &&
         refuses<Two>(misuse::varying_with_shard, V, S(0)) && refuses<Two>(misuse::varying_with_shard, S(1), V) &&
         refuses<Two>(misuse::different_shards, S(0), S(1)) && refuses<Two>(misuse::different_shards, S(1), S(0)) &&
         refuses<Two>(misuse::whole_with_shard, R, S(0)) && refuses<Two>(misuse::whole_with_shard, S(1), R) &&
         refuses<Two>(misuse::no_such_dimension, S(2), R) && refuses<Row>(misuse::no_such_dimension, R, S(1)) &&
         refuses<Two>(misuse::operand_count, R) && refuses<Two>(misuse::operand_count, R, R, R) &&
         gives<Row>(S(0), S(0), R) && gives<Row>(S(1), S(1), S(0)) && refuses<Row>(misuse::whole_with_shard, S(1), R) &&
         refuses<Row>(misuse::whole_with_shard, R, S(0)) && refuses<Row>(misuse::different_shards, S(0), S(0)) &&
         gives<Whole>(S(0), S(0), S(0)) && gives<Whole>(R, R, R) && gives<Whole>(I, I, I) && gives<Whole>(V, V, V) &&
         refuses<Whole>(misuse::sharded_but_needed_whole, S(1), S(1));
}

template <template <subscripts> class Rule>
constexpr bool judges_unreduced_v = judges_unreduced<Rule<"th,th->th">, Rule<"th,h->th">, Rule<"tH,tH->tH">>();

static_assert(judges_unreduced_v<nonlinear>);
static_assert(judges_unreduced_v<linear>);
static_assert(judges_unreduced_v<multilinear>);
static_assert(judges_unreduced_v<sum_over>);
static_assert(judges_unreduced_v<maximum_over>);
static_assert(judges_unreduced_v<mean_over>);

// The letters of the result determine its sharded dimension.
static_assert(gives<nonlinear<"thd->dth">>(S(1), S(0)));
static_assert(gives<nonlinear<"thd->dth">>(S(2), S(1)));
static_assert(gives<nonlinear<"thd->dth">>(S(0), S(2)));

// ── Rules that refuse partial operands ─────────────────────────────────────────────────────────────────────────────

template <class One, class Two>
constexpr bool refuses_partial() {
  for (const placement partial_one : {P, M, X}) {
    if (!refuses<One>(misuse::partial_in_nonlinear, partial_one)) return false;
    for (const placement other : {R, I, V, S(0), P, M, X}) {
      if (!refuses<Two>(misuse::partial_in_nonlinear, partial_one, other)) return false;
      if (!refuses<Two>(misuse::partial_in_nonlinear, other, partial_one)) return false;
    }
  }
  return true;
}

static_assert(refuses_partial<nonlinear<"th->th">, nonlinear<"th,th->th">>());
static_assert(refuses_partial<sum_over<"th->t">, sum_over<"th,th->t">>());
static_assert(refuses_partial<maximum_over<"th->t">, maximum_over<"th,th->t">>());
static_assert(refuses_partial<mean_over<"th->t">, mean_over<"th,th->t">>());

// ── nonlinear ──────────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(refuses<nonlinear<"th->t">>(misuse::reduced_without_rule, S(1)));
static_assert(refuses<nonlinear<"th,t->t">>(misuse::reduced_without_rule, S(1), R));
static_assert(gives<nonlinear<"th->t">>(S(0), S(0)));
static_assert(gives<nonlinear<"th->t">>(R, R));

// ── linear ─────────────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(gives<linear<"th->th">>(P, P));
static_assert(gives<linear<"th->t">>(P, P));
static_assert(gives<linear<"th,th->th">>(P, P, P));
static_assert(gives<linear<"th->t">>(P, S(1)));
static_assert(gives<linear<"th->h">>(P, S(0)));
static_assert(gives<linear<"th->t">>(S(0), S(0)));
static_assert(gives<linear<"th,th->t">>(P, S(1), S(1)));
static_assert(refuses<linear<"th,t->t">>(misuse::partial_plus_whole, S(1), R));
static_assert(refuses<linear<"t,th->t">>(misuse::partial_plus_whole, R, S(1)));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_plus_whole, P, R));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_plus_whole, R, P));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_plus_whole, P, I));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_plus_whole, P, V));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_plus_whole, P, S(0)));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_plus_whole, M, R));
static_assert(refuses<linear<"th->th">>(misuse::partial_without_rule, M));
static_assert(refuses<linear<"th->th">>(misuse::partial_without_rule, X));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_without_rule, P, X));
static_assert(refuses<linear<"th,th->th">>(misuse::partial_without_rule, M, M));
static_assert(refuses<linear<"th,th->th">>(misuse::operand_count, P));

// ── multilinear ────────────────────────────────────────────────────────────────────────────────────────────────────

using product = multilinear<"mk,kn->mn">;
static_assert(gives<product>(R, R, R));
static_assert(gives<product>(I, I, I));
static_assert(gives<product>(S(0), S(0), R));
static_assert(gives<product>(S(1), R, S(1)));
static_assert(gives<product>(P, S(1), S(0)));
static_assert(gives<product>(P, P, R));
static_assert(gives<product>(P, R, P));
static_assert(gives<product>(V, V, R));
static_assert(gives<multilinear<"mk->m">>(P, S(1)));
static_assert(gives<multilinear<"mk->m">>(P, P));
static_assert(gives<multilinear<"mk,n->mn">>(P, S(1), R));
static_assert(gives<multilinear<"a,a,a->a">>(P, R, P, R));
static_assert(refuses<product>(misuse::whole_with_shard, S(1), R));
static_assert(refuses<product>(misuse::whole_with_shard, R, S(0)));
static_assert(refuses<product>(misuse::different_shards, S(0), S(1)));
static_assert(refuses<product>(misuse::partial_times_partial, P, P));
static_assert(refuses<multilinear<"a,a,a->a">>(misuse::partial_times_partial, P, R, P));
static_assert(refuses<multilinear<"a,a,a->a">>(misuse::partial_times_partial, P, P, P));
static_assert(refuses<product>(misuse::partial_times_local, P, S(0)));
static_assert(refuses<product>(misuse::partial_times_local, S(1), P));
static_assert(refuses<product>(misuse::partial_times_local, P, V));
static_assert(refuses<multilinear<"a,a,a->a">>(misuse::partial_times_local, P, R, S(0)));
static_assert(refuses<product>(misuse::invariant_with_others, P, I));
static_assert(refuses<product>(misuse::invariant_with_others, I, P));
static_assert(refuses<product>(misuse::partial_without_rule, M, R));
static_assert(refuses<product>(misuse::partial_without_rule, X, R));
static_assert(refuses<product>(misuse::partial_without_rule, P, M));
static_assert(refuses<product>(misuse::operand_count, P));

// ── Reductions ─────────────────────────────────────────────────────────────────────────────────────────────────────

template <template <subscripts> class Rule>
constexpr bool reduces_to(placement expected) {
  return gives<Rule<"th->t">>(expected, S(1)) && gives<Rule<"th->h">>(expected, S(0)) &&
         gives<Rule<"th->">>(expected, S(0)) && gives<Rule<"th->">>(expected, S(1)) &&
         gives<Rule<"th,t->t">>(expected, S(1), R) && gives<Rule<"th->t">>(S(0), S(0)) && gives<Rule<"th->t">>(R, R) &&
         gives<Rule<"th->t">>(I, I) && gives<Rule<"th->t">>(V, V) &&
         refuses<Rule<"tH->t">>(misuse::sharded_but_needed_whole, S(1)) &&
         refuses<Rule<"th,th->t">>(misuse::whole_with_shard, S(1), R);
}
static_assert(reduces_to<sum_over>(P));
static_assert(reduces_to<maximum_over>(X));
static_assert(reduces_to<mean_over>(M));
static_assert(std::is_same_v<maximum_over<"th->t">::reduction, maximum>);

// ── Subscripts ─────────────────────────────────────────────────────────────────────────────────────────────────────

template <subscripts Text>
inline constexpr bool well_formed = Text.well_formed();
template <subscripts Text>
inline constexpr subscripts words = Text;

static_assert(well_formed<"mk,kn->mn">);
static_assert(well_formed<"th->">);
static_assert(well_formed<",t->t">);
static_assert(well_formed<"bH->bH">);
static_assert(!well_formed<"mk,kn">);
static_assert(!well_formed<"">);
static_assert(!well_formed<"mm->m">);
static_assert(!well_formed<"mk->mm">);
static_assert(!well_formed<"mk->mn">);
static_assert(!well_formed<"bh->bH">);
static_assert(!well_formed<"m k->m">);
static_assert(!well_formed<"m1->m">);
static_assert(words<"mk,kn->mn">.operands() == 2);
static_assert(words<"mk,kn->mn">.operand(0) == "mk");
static_assert(words<"mk,kn->mn">.operand(1) == "kn");
static_assert(words<"mk,kn->mn">.result() == "mn");
static_assert(words<"th->">.result().empty());

// ── Conversions from a row's placement to a column's placement ─────────────────────────────────────────────────────

using detail::conversion_between;
using detail::redistribution_between;

constexpr std::array every{R, I, V, S(0), S(1), P, M, X};

template <class Kind>
using table = std::array<std::array<Kind, every.size()>, every.size()>;

constexpr auto conversions = [] {
  using enum detail::conversion_kind;
  constexpr auto r_to_i = replicated_to_invariant;
  constexpr auto i_needs_r = invariant_needs_replicated;
  constexpr auto no_part = varying_is_no_part;
  constexpr auto other = to_other_partial;
  constexpr auto scatter = reduce_to_slices;
  constexpr auto among = pad_with_zeros;
  constexpr auto gather = gather_to_all;
  constexpr auto total = reduce_to_all;
  return table<detail::conversion_kind>{{
      // R,        I,         V,          S0,       S1,       P,             M,         X
      {already, r_to_i, nothing, slice, slice, keep_on_first, other, other},         // R
      {nothing, already, i_needs_r, slice, slice, i_needs_r, i_needs_r, i_needs_r},  // I
      {no_part, no_part, already, no_part, no_part, nothing, no_part, no_part},      // V
      {gather, gather, to_varying, already, exchange, among, other, other},          // S0
      {gather, gather, to_varying, exchange, already, among, other, other},          // S1
      {total, total, to_varying, scatter, scatter, already, other, other},           // P
      {total, total, to_varying, scatter, scatter, other, already, other},           // M
      {total, total, to_varying, scatter, scatter, other, other, other},             // X: of an unknown operation
  }};
}();

constexpr auto redistributions = [] {
  using enum detail::redistribution_kind;
  constexpr auto yes = possible;
  constexpr auto r_to_i = replicated_to_invariant;
  constexpr auto other = other_reduction;
  constexpr auto made = made_partial;
  return table<detail::redistribution_kind>{{
      // R, I, V, S0, S1, P, M, X
      {yes, r_to_i, varying, yes, yes, yes, made, made},                     // R
      {yes, yes, varying, yes, yes, made, made, made},                       // I
      {varying, varying, yes, varying, varying, varying, varying, varying},  // V
      {yes, yes, varying, yes, yes, yes, made, made},                        // S0
      {yes, yes, varying, yes, yes, yes, made, made},                        // S1
      {yes, yes, varying, yes, yes, yes, other, other},                      // P
      {yes, yes, varying, yes, yes, other, yes, other},                      // M
      {yes, yes, varying, yes, yes, other, other, other},                    // X
  }};
}();

template <class Kind, class Between>
constexpr bool agrees(const table<Kind>& expected, Between between) {
  for (std::size_t from = 0; from < every.size(); ++from) {
    for (std::size_t to = 0; to < every.size(); ++to) {
      if (between(every[from], every[to]) != expected[from][to]) return false;
    }
  }
  return true;
}

static_assert(agrees(conversions, conversion_between));
static_assert(agrees(redistributions, redistribution_between));

// ── Gradients ──────────────────────────────────────────────────────────────────────────────────────────────────────

static_assert(std::is_same_v<gradient_placement_t<replicated>, partial<sum>>);
static_assert(std::is_same_v<gradient_placement_t<partial<sum>>, replicated>);
static_assert(std::is_same_v<gradient_placement_t<invariant>, invariant>);
static_assert(std::is_same_v<gradient_placement_t<varying>, varying>);
static_assert(std::is_same_v<gradient_placement_t<shard<0>>, shard<0>>);
static_assert(std::is_same_v<gradient_placement_t<shard<3>>, shard<3>>);

// ── Parts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

constexpr bool is_chunk(plan::extent found, std::size_t begin, std::size_t size) {
  return found.begin == begin && found.size == size;
}
static_assert(is_chunk(chunk(8, 4, 0), 0, 2) && is_chunk(chunk(8, 4, 3), 6, 2));
static_assert(is_chunk(chunk(10, 4, 0), 0, 3) && is_chunk(chunk(10, 4, 2), 6, 3) && is_chunk(chunk(10, 4, 3), 9, 1));
static_assert(is_chunk(chunk(5, 4, 2), 4, 1) && is_chunk(chunk(5, 4, 3), 5, 0));  // 2, 2, 1 and nothing
static_assert(is_chunk(chunk(1, 4, 0), 0, 1) && is_chunk(chunk(1, 4, 3), 1, 0));
static_assert(is_chunk(chunk(0, 4, 0), 0, 0) && is_chunk(chunk(7, 1, 0), 0, 7));

constexpr box<2> part(std::array<placement, 2> placed, std::array<int, 2> at) {
  return part_of<2>({10, 6}, placed, std::array{2, 3}, at);
}
static_assert(part({R, R}, {1, 2}) == box<2>{{0, 0}, {10, 6}});
static_assert(part({P, I}, {1, 2}) == box<2>{{0, 0}, {10, 6}});
static_assert(part({S(0), R}, {1, 2}) == box<2>{{5, 0}, {5, 6}});
static_assert(part({S(0), S(1)}, {1, 2}) == box<2>{{5, 4}, {5, 2}});
static_assert(part({S(1), S(0)}, {1, 2}) == box<2>{{8, 3}, {2, 3}});
// Nested: dp cuts the rows into 5 and 5, tp each of these into 2, 2 and 1.
static_assert(part({S(0), S(0)}, {0, 0}) == box<2>{{0, 0}, {2, 6}});
static_assert(part({S(0), S(0)}, {0, 2}) == box<2>{{4, 0}, {1, 6}});
static_assert(part({S(0), S(0)}, {1, 0}) == box<2>{{5, 0}, {2, 6}});
static_assert(part({S(0), S(0)}, {1, 2}) == box<2>{{9, 0}, {1, 6}});
// 3 rows among 2 times 3 ranks: 2 and 1, and then 1, 1, 0 and 1, 0, 0.
static_assert(part_of<1>({3}, std::array{S(0), S(0)}, std::array{2, 3}, std::array{0, 2}).volume() == 0);
static_assert(part_of<1>({3}, std::array{S(0), S(0)}, std::array{2, 3}, std::array{1, 0}) == box<1>{{2}, {1}});
static_assert(part_of<1>({3}, std::array{S(0), S(0)}, std::array{2, 3}, std::array{1, 1}).volume() == 0);
static_assert(intersection(box<1>{{2}, {4}}, box<1>{{5}, {4}}) == box<1>{{5}, {1}});
static_assert(intersection(box<1>{{2}, {2}}, box<1>{{5}, {4}}).volume() == 0);

}  // namespace
