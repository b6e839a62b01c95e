// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which arguments `explain` accepts, and the compiler's diagnostic for those that it does not: one sentence about the
/// first mistake. See collective/detail/misuse.hpp.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <functional>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// A call that chooses an algorithm: all calls except messages.
template <class Collective>
concept explainable = requires { Collective::collective; };

/// Returns which lengths a collective takes: equal blocks, counts known to all ranks, or counts known to pairs.
template <class Collective>
constexpr block_lengths lengths_of() noexcept {
  if constexpr (requires { Collective::block_lengths; }) {
    return Collective::block_lengths;
  } else {
    return block_lengths::equal;
  }
}

/// Whether `Op` is an operation that a collective of `Kind` can have on elements of T. One that combines nothing has
/// only the default, std::plus<>.
template <class Op, plan::collective_kind Kind, class T>
concept operation_of_kind =
    !explain_place_of_operation<Op>() &&
    (plan::collective{Kind, 0}.reduces() ? reduction_for<Op, T> : std::is_same_v<Op, std::plus<>>);

/// Whether `explain<T>` of `Collective`, which takes such lengths, accepts this operation and these options.
template <block_lengths Lengths, class T, class Collective, class Op, class Options>
concept explained_call = explainable<Collective> && lengths_of<Collective>() == Lengths && element<T> &&
                         operation_of_kind<Op, Collective::collective, T> &&
                         accepted_with<Options, collective_options<Collective::collective, Op, T>, void>;

/// The same if a root is passed.
template <block_lengths Lengths, class T, class Collective, class Op, class Options>
concept explained_rooted_call =
    explained_call<Lengths, T, Collective, Op, Options> && plan::collective{Collective::collective, 0}.has_root();

/// Checks the options at Index, the last argument.
template <plan::collective_kind Kind, class T, class Op, class Arguments, std::size_t Index>
consteval sentence explain_options_to_explain() {
  if (Arguments::template has<Index + 1>) return "explain(...) ends with the options of the call";
  return explain_options<collective_options<Kind, Op, T>, Arguments, Index>();
}

/// Checks the root at Index, which can be omitted, and the options after it.
template <plan::collective_kind Kind, class T, class Op, class Arguments, std::size_t Index>
consteval sentence explain_root_to_explain() {
  using given = typename Arguments::template plain<Index>;
  constexpr bool has_root = std::is_same_v<given, root>, takes_root = plan::collective{Kind, 0}.has_root();
  if (has_root && !takes_root) return "this collective has no root: pass the options after the operation";
  if (takes_root && !is_options<given> && explain_root<Arguments, Index>()) return explain_root<Arguments, Index>();
  return explain_options_to_explain<Kind, T, Op, Arguments, Index + (has_root ? 1 : 0)>();
}

/// Checks the operation at Index, which can be omitted, and the root and the options after it.
template <plan::collective_kind Kind, class T, class Arguments, std::size_t Index>
consteval sentence explain_operation_to_explain() {
  using given = typename Arguments::template plain<Index>;
  if constexpr (!Arguments::template has<Index> || is_options<given> || std::is_same_v<given, root>) {
    if constexpr (!operation_of_kind<std::plus<>, Kind, T>) return explain_operation<std::plus<>, T>();
    return explain_root_to_explain<Kind, T, std::plus<>, Arguments, Index>();
  } else if constexpr (constexpr sentence misplaced = explain_place_of_operation<given>(); misplaced) {
    return misplaced;
  } else if constexpr (!operation_of_kind<given, Kind, T>) {
    if (!plan::collective{Kind, 0}.reduces()) {
      return "this collective combines nothing, and explain(...) takes no operation for it: pass the options after the "
             "number of elements, or after the root";
    }
    return explain_operation<given, T>();
  } else {
    return explain_root_to_explain<Kind, T, given, Arguments, Index + 1>();
  }
}

/// Returns the mistake in `explain<T>(communicator, collective, count, op, root, options)`: `count` is a number of
/// elements, hocket::counts, or missing, according to the collective.
template <class T, class Arguments>
consteval sentence explain_explain() {
  using collective = typename Arguments::template plain<1>;
  using count = typename Arguments::template plain<2>;
  if constexpr (explain_communicator<Arguments>()) {
    return explain_communicator<Arguments>();
  } else if constexpr (!explainable<collective>) {
    return "explain(...) takes a collective after the communicator, as in explain<float>(comm, all_reduce, 1000); "
           "messages have no algorithms to choose from";
  } else if constexpr (std::is_void_v<T>) {
    return "explain<T>(...) needs the type of the elements, as in explain<float>(comm, all_reduce, 1000)";
  } else if constexpr (explain_element<T>()) {
    return explain_element<T>();
  } else if constexpr (lengths_of<collective>() == block_lengths::known_to_pairs) {
    return explain_options_to_explain<collective::collective, T, std::plus<>, Arguments, 2>();
  } else if constexpr (lengths_of<collective>() == block_lengths::known_to_all && !std::is_same_v<count, counts>) {
    return "for a collective with counts, pass the lengths of the ranks' blocks after the collective: "
           "explain<float>(comm, all_gather_v, counts{lengths})";
  } else if constexpr (lengths_of<collective>() == block_lengths::equal && !std::is_convertible_v<count, std::size_t>) {
    return "pass the number of elements after the collective: explain<float>(comm, all_reduce, 1000)";
  } else {
    return explain_operation_to_explain<collective::collective, T, Arguments, 3>();
  }
}

template <class T, class... Given>
  requires(static_cast<bool>(explain_explain<T, argument_list<Given...>>()))
constexpr auto why_not_explained() {
  return make_explanation([] { return explain_explain<T, argument_list<Given...>>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
