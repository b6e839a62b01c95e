// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Which options each family of calls accepts, as constraints of the calls and as the compiler's diagnostics.
///
/// A family has a member `explain<Options>()`, which returns a sentence about the first option that these calls do not
/// accept, or nothing. `accepted_by` and `accepted_with` are the constraints. They are true for `options<>` without
/// asking the family, because most calls have no options.
#pragma once

#include <hocket/collective/host/algorithm_diagnostics.hpp>
#include <hocket/collective/host/effective_operation.hpp>
#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/device_buffer.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/operation/adaptors.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>

#include <functional>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Whether the compiler may change the results of floating-point expressions.
#ifdef __FAST_MATH__
inline constexpr bool fast_math = true;
#else
inline constexpr bool fast_math = false;
#endif

/// Returns the mistake in the options of a call on host buffers if some are valid only with tagged buffers. They are
/// refused even as a hint, because a caller that passes them expects device memory.
template <class Options>
consteval sentence explain_device_options_on_host() {
  if (Options::template has<kind::stream> || Options::template has<kind::staging>) {
    return "with(...): a stream or cuda::staging is valid only with tagged buffers, such as cuda::device(...); this "
           "call has none, and the host runs it regardless of a stream";
  }
  return {};
}

/// Whether every option is a hint or has one of `Kinds`, or is one that `explain_device_options_on_host` checks.
template <class Options, class... Kinds>
inline constexpr bool has_only = Options::template only<Kinds..., kind::stream, kind::staging>;

/// The algorithm that the options name.
template <class Options>
using algorithm_of = std::remove_cvref_t<decltype(std::declval<const Options&>().template at<kind::algorithm>())>;

/// Whether the options name an algorithm that the call must use.
template <class Options>
inline constexpr bool names_algorithm =
    Options::template has<kind::algorithm> && !Options::template is_hint<kind::algorithm>;

template <plan::collective_kind Kind, class Options>
consteval sentence explain_algorithm() {
  if constexpr (names_algorithm<Options>) {
    if constexpr (!has_algorithm<Kind, algorithm_of<Options>>) return no_such_algorithm<Kind>.characters.data();
  }
  return {};
}

/// Checks the exactness that a reduction of T by `Op` requires.
template <class Op, class T, class Options>
consteval sentence explain_exactness() {
  using exactness = exactness_of<Options>;
  constexpr bool is_changed = fast_math && is_floating<T>;
  if constexpr (std::is_same_v<exactness, fixed_tree_t>) {
    if (is_changed) {
      return "require(fixed_tree): this source is compiled with -ffast-math, which lets the compiler change results: "
             "compile it without this option";
    }
  } else if constexpr (std::is_same_v<exactness, rank_count_invariant_t>) {
    if (std::is_void_v<typename rank_count_invariant_operation<Op, T>::type>) {
      return "require(rank_count_invariant): no way to combine this type with this operation gives the same bits for "
             "any number of ranks; use a sum of float or double, or an exact operation";
    }
    if (is_changed) {
      return "require(rank_count_invariant): this source is compiled with -ffast-math, which lets the compiler change "
             "results: compile it without this option";
    }
    if (Options::template has<kind::wire> && !Options::template is_hint<kind::wire>) {
      return "require(rank_count_invariant) and wire<T> exclude each other: values must be sent unrounded";
    }
  }
  return {};
}

/// Checks the wire type of a reduction of T by `Op`.
template <class Op, class T, class Options>
consteval sentence explain_wire_type() {
  if constexpr (Options::template has<kind::wire> && !Options::template is_hint<kind::wire>) {
    using wire_type = wire_type_of<Options>;
    if (loses_values<wire_type, T>) {
      return "wire<T>: fractions, or large integers, would be lost in this type: use a smaller floating-point type, "
             "such as bfloat16, for floating-point elements, and no wire type for integers";
    }
    if (!callable_operation<Op, accumulator_t<T>>) {
      return "wire<T>: the operation must be callable as op(a, b) on the accumulator type of the elements";
    }
    if (!can_travel_as<Op, wire_type, T>) {
      return "wire<T>: elements can't be converted to this type and back: use a smaller floating-point type, such as "
             "bfloat16, for floating-point elements";
    }
  }
  return {};
}

/// Checks that the algorithm combines in an order that the operation `Effective`, the one that runs, allows.
template <plan::collective_kind Kind, class Effective, class T, class Options>
consteval sentence explain_order() {
  if constexpr (names_algorithm<Options>) {
    constexpr plan::combination_order needed = weakest_order<Effective, T>();
    if constexpr (order_of<Kind, algorithm_of<Options>>() <= needed) {
      return {};
    } else if constexpr (needed == plan::combination_order::fixed_tree) {
      return not_in_fixed_tree<Kind>.characters.data();
    } else {
      return not_in_rank_order<Kind>.characters.data();
    }
  }
  return {};
}

// ── Families ───────────────────────────────────────────────────────────────────────────────────────────────────────

/// Calls that only wait for other ranks.
struct timeout_options {
  template <class Options>
  static consteval sentence explain() {
    if (!Options::template only<kind::timeout>) {
      return "with(...): this call takes only a timeout; wrap other properties in hint(...) to have them ignored";
    }
    return {};
  }
};

/// Messages between two ranks.
struct message_options {
  template <class Options>
  static consteval sentence explain() {
    if (!has_only<Options, kind::timeout, kind::stop>) {
      return "with(...): a message takes only a timeout and a stop token; wrap other properties in hint(...) to have "
             "them ignored";
    }
    return {};
  }
};

/// Collectives that combine nothing.
template <plan::collective_kind Kind>
struct move_options {
  template <class Options>
  static consteval sentence explain() {
    if (!has_only<Options, kind::algorithm, kind::timeout, kind::stop, kind::observer, kind::integrity>) {
      return "with(...): this operation combines nothing, so it takes only an algorithm, timeout(...), "
             "require(checksummed), observe_steps(...) and a stop token; wrap other properties in hint(...) to have "
             "them "
             "ignored";
    }
    return explain_algorithm<Kind, Options>();
  }
};

/// Reductions of elements of T by `Op`, which must be an operation on them.
template <plan::collective_kind Kind, class Op, class T>
struct reduction_options {
  template <class Options>
  static consteval sentence explain() {
    constexpr sentence wrong = explain_properties<Options>();
    if constexpr (wrong) {
      return wrong;
    } else {
      return explain_order<Kind, effective_operation_t<Op, T, Options>, T, Options>();
    }
  }

 private:
  template <class Options>
  static consteval sentence explain_properties() {
    if (!has_only<Options, kind::algorithm, kind::timeout, kind::stop, kind::wire, kind::observer, kind::exactness,
                  kind::integrity>) {
      return "with(...): a reduction takes only an algorithm, timeout(...), wire<T>, require(...), observe_steps(...) "
             "and a "
             "stop token; wrap other properties in hint(...) to have them ignored";
    }
    return first_of(
        {explain_algorithm<Kind, Options>(), explain_exactness<Op, T, Options>(), explain_wire_type<Op, T, Options>()});
  }
};

/// A collective of `Kind` on elements of T, which is a reduction by `Op` if the collective combines.
template <plan::collective_kind Kind, class Op, class T>
using collective_options =
    std::conditional_t<plan::collective{Kind, 0}.reduces(), reduction_options<Kind, Op, T>, move_options<Kind>>;

/// Whether calls of `Family` accept the options.
template <class Options, class Family>
concept accepted_by = std::is_same_v<Options, options<>> || !Family::template explain<Options>();

/// Whether a call of `Family` on `Buffer`, in host or device memory, accepts the options.
template <class Options, class Family, class Buffer>
concept accepted_with = accepted_by<Options, Family> &&
                        (is_device_buffer<std::remove_cvref_t<Buffer>> || !explain_device_options_on_host<Options>());

/// Returns the mistake in the options of a call of `Family` on host memory.
template <class Family, class Options>
consteval sentence explain_host_options() {
  if constexpr (accepted_with<Options, Family, void>) {
    return {};
  } else {
    return first_of({explain_device_options_on_host<Options>(), Family::template explain<Options>()});
  }
}

/// Like the above, for the options among `Rest`, which end a call: see core/call_end.hpp.
template <class Family, class... Rest>
consteval sentence explain_options_at_end() {
  return explain_host_options<Family, options_at_end_t<Rest...>>();
}

/// Returns the mistake in an argument in the place of the options of a call of `Family`.
template <class Family, class Given>
consteval sentence explain_given_options() {
  if constexpr (!call_options<Given>) {
    return "the options must be made by with(...), as in with(timeout(5s))";
  } else {
    return explain_host_options<Family, Given>();
  }
}

template <class Family, class Given>
  requires(static_cast<bool>(explain_given_options<Family, Given>()))
constexpr auto why_not_options_of() {
  return make_explanation([] { return explain_given_options<Family, Given>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
