// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which arguments `gradients`, `parameters` and an accumulator's `add` accept, and the compiler's diagnostics for the
/// others: one sentence about the first mistake. Each `why_...` is the template argument of a deleted
/// overload: see core/explanation.hpp.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/gradient/data_parallel.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/gradient/policy.hpp>
#include <hocket/gradient/reduction.hpp>
#include <hocket/gradient/totals.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <functional>
#include <memory_resource>
#include <source_location>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the mistake in a group passed as `Over&&`. Groups store the address of a communicator.
template <class Over>
consteval sentence explain_group() {
  if constexpr (!group_of_ranks<Over>) {
    return "the group of gradients(...) or parameters(...) must be a communicator, such as mesh.along<\"dp\">(), or "
           "hybrid(shards, replicas)";
  } else if (!std::is_lvalue_reference_v<Over> && !decltype(as_group(std::declval<Over&>()))::has_replicas) {
    return "this communicator is a temporary, and gradients(...) or parameters(...) would store its address: use a "
           "named communicator that outlives the result";
  }
  return {};
}

template <class Layout>
consteval sentence explain_layout() {
  if (!std::is_convertible_v<Layout, parameter_layout>) {
    return "the argument after the group in gradients(...) and parameters(...) must be a parameter_layout";
  }
  return {};
}

template <class Options>
consteval sentence explain_place_of_group_options() {
  if (!call_options<Options>) {
    return "the argument after zero<s> in gradients(...) and parameters(...) must be options, such as "
           "with(timeout(5s))";
  }
  return {};
}

// ── gradients ──────────────────────────────────────────────────────────────────────────────────────────────────────

consteval sentence explain_policy(policy_fault fault) {
  switch (fault) {
    case policy_fault::no_time:
      return "gradients(...): the reduction time must be last_microbatch, every_microbatch or "
             "scatter_every_reduce_last";
    case policy_fault::no_stage:
      return "gradients(...): the sharding stage must be zero<0>, zero<1>, zero<2> or zero<3>";
    case policy_fault::whole_of_parts:
      return "gradients(...): zero<2> and zero<3> store a part of the gradient, but last_microbatch needs the whole "
             "gradient until the last microbatch: use every_microbatch or zero<1>";
    case policy_fault::part_of_the_whole:
      return "gradients(...): zero<1> stores the whole gradient, but a reduction at every microbatch leaves only a "
             "part: use zero<2>, which needs less memory, or last_microbatch";
    case policy_fault::scattered_whole:
      return "gradients(...): scatter_every_reduce_last leaves each rank a part of the gradient, but zero<0> stores "
             "the whole gradient: use every_microbatch or zero<2>";
    case policy_fault::no_replicas:
      return "gradients(...): scatter_every_reduce_last reduces over replicas at the end, but this group has none: "
             "pass hybrid(shards, replicas), or use every_microbatch";
    default: return {};
  }
}

template <class T>
consteval sentence explain_sum_type() {
  if ((!std::is_floating_point_v<T> && !is_exact_sum<T>) || std::is_const_v<T>) {
    return "gradients<T>: T, the type of the sums, must be float, double, or exact_sum of one of them. A narrower type "
           "would lose small summands: use gradients<float>, and with(wire<bfloat16>) to send fewer bytes";
  }
  return {};
}

template <class T, class Options>
consteval sentence explain_exact_on_wire() {
  if (is_exact_sum<T> && Options::template has<kind::wire> && !Options::template is_hint<kind::wire>) {
    return "gradients<exact_sum<...>>(...): exact sums are sent unchanged, and wire<...> would round them: use only "
           "one of the two";
  }
  return {};
}

template <class Reduction, class Domain, class T, class Options>
consteval sentence explain_reduction() {
  if constexpr (!requires { typename started_by<Reduction, Domain, T, Options>; }) {
    return "gradients(...): the argument after the options must be a reduction, with the members all_reduce and "
           "reduce_scatter of plain_reduction";
  } else if (!started_reduction<started_by<Reduction, Domain, T, Options>>) {
    return "gradients(...): the members of a reduction must return an object with test() and wait()";
  }
  return {};
}

/// Returns the mistake in options that `Reduction` passes to collectives: one that ranks sum to pieces by if it
/// `Scatters`, and an all_reduce otherwise and over replicas. A user-defined reduction may use any options.
template <class Reduction, bool Scatters, bool HasReplicas, class T, class Options>
consteval sentence explain_options_of_reduction() {
  using enum plan::collective_kind;
  if constexpr (std::is_base_of_v<plain_reduction, Reduction>) {
    constexpr sentence scattered =
        Scatters ? explain_host_options<reduction_options<reduce_scatter, std::plus<>, T>, Options>() : sentence();
    if constexpr (scattered || (Scatters && !HasReplicas)) {
      return scattered;
    } else {
      return explain_host_options<reduction_options<all_reduce, std::plus<>, T>, Options>();
    }
  } else {
    return {};
  }
}

/// Returns the mistake in what may follow the options of `gradients`: the allocator of memory, and the call's site.
template <class... Rest>
consteval sentence explain_memory() {
  using all = argument_list<Rest...>;
  constexpr bool has_memory =
      !all::template has<0> || std::is_convertible_v<typename all::template at<0>, std::pmr::memory_resource*>;
  constexpr bool has_site =
      !all::template has<1> || std::is_same_v<typename all::template plain<1>, std::source_location>;
  if (!has_memory || !has_site || all::template has<2>) {
    return "gradients(...) and parameters(...) end with a std::pmr::memory_resource*, which allocates all memory";
  }
  return {};
}

/// The arguments of `gradients<T>`. The specializations have those that must be passed, and then those that can be
/// omitted.
template <class T, class... Given>
struct gradients_call {
  static consteval sentence explain() {
    return "gradients<T>(group, layout, when, stage) needs all of these: the type of the sums, such as float; a group, "
           "a layout, when to reduce, such as last_microbatch, and the sharding stage, such as zero<1>";
  }
};
template <class T, class Over, class Layout, class When, class Sharding>
  requires(!std::is_void_v<T>)
struct gradients_call<T, Over, Layout, When, Sharding> : gradients_call<T, Over, Layout, When, Sharding, options<>> {};
template <class T, class Over, class Layout, class When, class Sharding, class Options>
  requires(!std::is_void_v<T>)
struct gradients_call<T, Over, Layout, When, Sharding, Options>
    : gradients_call<T, Over, Layout, When, Sharding, Options, plain_reduction> {};
template <class T, class Over, class Layout, class When, class Sharding, class Options, class Reduction, class... Rest>
  requires(!std::is_void_v<T>)
struct gradients_call<T, Over, Layout, When, Sharding, Options, Reduction, Rest...> {
  static consteval sentence explain() {
    constexpr sentence wrong = explain_kinds();
    if constexpr (wrong) {
      return wrong;
    } else {
      using group = decltype(as_group(std::declval<Over&>()));
      constexpr bool scatters = Sharding::shards_states || reduces_in_pieces<Reduction>;
      return first_of({explain_policy(fault_of_policy<When, Sharding>(group::has_replicas)),
                       explain_exact_on_wire<T, Options>(),
                       explain_reduction<Reduction, typename group::domain_type, T, Options>(),
                       explain_options_of_reduction<Reduction, scatters, group::has_replicas, T, Options>()});
    }
  }

 private:
  static consteval sentence explain_kinds() {
    return first_of({explain_group<Over>(), explain_layout<Layout>(), explain_sum_type<T>(),
                     explain_place_of_group_options<Options>(), explain_policy(fault_of_policy<When, Sharding>(true)),
                     explain_memory<Rest...>()});
  }
};

/// Returns the mistake in the arguments of `gradients<T>`. The first keeps its reference: see `explain_group`.
template <class T>
consteval sentence explain_gradients() {
  return gradients_call<T>::explain();
}
template <class T, class Over, class... Given>
consteval sentence explain_gradients() {
  return gradients_call<T, Over, std::remove_cvref_t<Given>...>::explain();
}

template <class T, class... Given>
inline constexpr bool makes_gradients = !explain_gradients<T, Given...>();

template <class T, class... Given>
  requires(!makes_gradients<T, Given...>)
constexpr auto why_no_gradients() {
  return make_explanation([] { return explain_gradients<T, Given...>(); });
}

/// Returns the mistake in a gradient that is added to sums of T by an accumulator's `add`.
template <class T, class Given>
consteval sentence explain_added() {
  if constexpr (!contiguous_buffer<Given>) {
    return "gradients.add(i, gradient): the gradient must be a contiguous range of numbers, such as a vector; add a "
           "tensor with add_gradient<\"dp\">(gradients, i, tensor)";
  } else if (!fits_into<element_type_t<Given>, T>()) {
    return "gradients.add: the elements of this gradient have more digits than the sums, and would be rounded first: "
           "use gradients<double> or gradients<exact_sum<double>>, or round them yourself";
  }
  return {};
}

/// Whether an accumulator of sums of T can add such a gradient.
template <class Given, class T>
concept added_to_sums_of = !explain_added<T, Given>();

template <class T, class Given>
  requires(!added_to_sums_of<Given, T>)
constexpr auto why_not_added() {
  return make_explanation([] { return explain_added<T, Given>(); });
}

// ── parameters ─────────────────────────────────────────────────────────────────────────────────────────────────────

/// The arguments of `parameters<P>`, as for `gradients_call`.
template <class P, class... Given>
struct parameters_call {
  static consteval sentence explain() {
    return "parameters<P>(group, layout, stage) needs all of these: the element type, such as float; a group, a "
           "layout, and the sharding stage, such as zero<1>";
  }
};
template <class P, class Over, class Layout, class Sharding>
  requires(!std::is_void_v<P>)
struct parameters_call<P, Over, Layout, Sharding> : parameters_call<P, Over, Layout, Sharding, options<>> {};
template <class P, class Over, class Layout, class Sharding, class Options, class... Rest>
  requires(!std::is_void_v<P>)
struct parameters_call<P, Over, Layout, Sharding, Options, Rest...> {
  static consteval sentence explain() {
    constexpr sentence wrong =
        first_of({explain_group<Over>(), explain_layout<Layout>(), explain_stage(),
                  explain_place_of_group_options<Options>(), explain_memory<Rest...>(), explain_elements()});
    if constexpr (wrong) {
      return wrong;
    } else {
      return explain_host_options<move_options<plan::collective_kind::all_gather>, Options>();
    }
  }

 private:
  static consteval sentence explain_elements() {
    if (element<P> && !std::is_const_v<P>) return {};
    return "parameters<P>(...): P, the type of the elements, must be trivially copyable and not const, such as float";
  }
  static consteval sentence explain_stage() {
    if (sharding_stage<Sharding>) return {};
    return "parameters(...): the sharding stage must be zero<0>, zero<1>, zero<2> or zero<3>";
  }
};

/// Returns the mistake in the arguments of `parameters<P>`.
template <class P>
consteval sentence explain_parameters() {
  return parameters_call<P>::explain();
}
template <class P, class Over, class... Given>
consteval sentence explain_parameters() {
  return parameters_call<P, Over, std::remove_cvref_t<Given>...>::explain();
}

template <class P, class... Given>
inline constexpr bool makes_parameters = !explain_parameters<P, Given...>();

template <class P, class... Given>
  requires(!makes_parameters<P, Given...>)
constexpr auto why_no_parameters() {
  return make_explanation([] { return explain_parameters<P, Given...>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
