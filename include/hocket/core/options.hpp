// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The options of one call, as one value: `with(ring, timeout(5s), require(run_to_run))`.
///
/// Each option is a *property*, a small type with a `kind`. A collective names the kinds that it supports; other kinds
/// do not compile, so that no property is ignored silently. `hint(p)` makes the property p optional: a call uses p
/// where possible, and ignores it elsewhere. Requirements can't be optional: `hint(require(...))` does not compile.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/option_kinds.hpp>

#include <chrono>
#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

namespace detail {

template <class Value>
struct stop_property {
  using kind = hocket::kind::stop;
  Value token;
};

template <class Property>
struct optional_property {
  using kind = typename Property::kind;
  Property property;
};

template <class Property>
struct is_optional_property : std::false_type {};
template <class Property>
struct is_optional_property<optional_property<Property>> : std::true_type {};

/// A type that can be asked whether to stop, such as `std::stop_token`.
template <class Token>
concept stop_token_like = std::copy_constructible<Token> && requires(const Token& token) {
  { token.stop_requested() } -> std::convertible_to<bool>;
};

template <class Kind, class... Properties>
inline constexpr int count_of_kind = (0 + ... + static_cast<int>(std::is_same_v<Kind, typename Properties::kind>));

template <class Kind, class... Kinds>
inline constexpr bool is_one_of = (std::is_same_v<Kind, Kinds> || ...);

/// Base class of `options` that stores one property. Each property has its own base class.
template <class Property>
struct stored_property {
  Property value;
};

}  // namespace detail

/// The properties of one call. Made by `with`.
template <property... Properties>
class options : detail::stored_property<Properties>... {
  static_assert(((detail::count_of_kind<typename Properties::kind, Properties...> == 1) && ...),
                "with(...): two properties have the same kind; pass only one property of each kind");

 public:
  constexpr options()
    requires(sizeof...(Properties) == 0)
  = default;
  /// A template, so that `options()` is never ambiguous: after another error, g++ treats all constraints as satisfied.
  template <class = void>
  constexpr explicit options(Properties... values)
    requires(sizeof...(Properties) > 0)
      : detail::stored_property<Properties>{std::move(values)}... {}

  /// True if there is a property of `Kind`.
  template <class Kind>
  static constexpr bool has = detail::count_of_kind<Kind, Properties...> > 0;

  /// Returns the property of `Kind`, also if it is hinted. Does not compile if there is none.
  template <class Kind>
  constexpr const auto& at() const noexcept {
    return find<Kind, Properties...>();
  }

  /// Returns a copy of the property of `Kind`, or `fallback` if there is none.
  template <class Kind, class Fallback>
  constexpr auto get(Fallback fallback) const {
    if constexpr (has<Kind>) {
      return at<Kind>();
    } else {
      return fallback;
    }
  }

  /// True if every property is a hint or has one of `Kinds`.
  template <class... Kinds>
  static constexpr bool only = ((detail::is_optional_property<Properties>::value ||
                                 detail::is_one_of<typename Properties::kind, Kinds...>)&&...);

  /// Returns these options with `one` as an additional property.
  template <class More>
  constexpr options<Properties..., More> and_also(More one) const {
    return options<Properties..., More>(static_cast<const detail::stored_property<Properties>&>(*this).value...,
                                        std::move(one));
  }

  /// Returns these options without the property of `Kind`, if any.
  template <class Kind>
  constexpr auto without() const {
    return std::apply(
        [](auto... kept) {
          if constexpr (sizeof...(kept) == 0) {
            return options<>();
          } else {
            return options<decltype(kept)...>(std::move(kept)...);
          }
        },
        std::tuple_cat(unless<Kind>(static_cast<const detail::stored_property<Properties>&>(*this).value)...));
  }

  /// True if the property of `Kind` is only a hint.
  template <class Kind>
  static constexpr bool is_hint =
      ((std::is_same_v<typename Properties::kind, Kind> && detail::is_optional_property<Properties>::value) || ...);

 private:
  template <class Kind, class Property>
  static constexpr auto unless(const Property& each) {
    if constexpr (std::is_same_v<typename Property::kind, Kind>) {
      return std::tuple<>();
    } else {
      return std::tuple<Property>(each);
    }
  }

  template <class Kind, class First, class... Rest>
  constexpr const auto& find() const noexcept {
    if constexpr (!std::is_same_v<typename First::kind, Kind>) {
      return find<Kind, Rest...>();
    } else if constexpr (detail::is_optional_property<First>::value) {
      return static_cast<const detail::stored_property<First>&>(*this).value.property;
    } else {
      return static_cast<const detail::stored_property<First>&>(*this).value;
    }
  }
};

/// Deduces the types of the properties.
template <property... Properties>
options(Properties...) -> options<Properties...>;

namespace detail {

template <class T>
inline constexpr bool is_options = false;
template <class... Properties>
inline constexpr bool is_options<options<Properties...>> = true;

}  // namespace detail

/// Types that calls accept as options: only the results of `with`.
template <class T>
concept call_options = detail::is_options<T>;

namespace detail {

template <class Value>
concept is_property_or_token = property<Value> || stop_token_like<Value>;

template <class Value>
constexpr auto as_property(Value value) {
  if constexpr (property<Value>) {
    return value;
  } else {
    return stop_property<Value>{std::move(value)};
  }
}

template <class Value>
using property_of = decltype(as_property(std::declval<Value>()));

template <class Value>
concept duration_like = requires { typename Value::period; };

/// Returns the mistake in one argument of `with`.
template <class Value>
consteval sentence explain_property() {
  if (duration_like<Value>) return "with(...): pass a duration as a timeout: with(timeout(5s))";
  if (!is_property_or_token<Value>) {
    return "with(...): not a property. Properties are algorithms (ring, two_shot, ...), timeout(...), wire<T>, "
           "require(...), hint(...), observe_steps(...) and stop tokens";
  }
  return {};
}

template <class... Properties>
inline constexpr bool have_distinct_kinds = ((count_of_kind<typename Properties::kind, Properties...> == 1) && ...);

template <class... Values>
consteval sentence explain_with() {
  constexpr sentence wrong = first_of({sentence(), explain_property<Values>()...});
  if constexpr (wrong) {
    return wrong;
  } else if (!have_distinct_kinds<property_of<Values>...>) {
    return "with(...): two properties have the same kind; pass only one property of each kind";
  }
  return {};
}

template <class Value>
consteval sentence explain_hint() {
  if constexpr (is_optional_property<Value>::value) {
    return "hint(hint(...)): the property is a hint already; call hint once";
  } else if constexpr (!is_property_or_token<Value>) {
    return "hint(...): not a property; pass an algorithm, timeout(...), wire<T>, observe_steps(...) or a stop token";
  } else if (is_one_of<typename property_of<Value>::kind, kind::exactness, kind::integrity>) {
    return "hint(require(...)): a requirement can't be a hint; pass require(...) where it must hold, and leave it out "
           "elsewhere";
  }
  return {};
}

template <class... Values>
inline constexpr bool are_options = !explain_with<Values...>();
template <class Value>
inline constexpr bool is_hintable = !explain_hint<Value>();

template <class... Values>
  requires(!are_options<Values...>)
constexpr auto why_not_options() {
  return make_explanation([] { return explain_with<Values...>(); });
}

template <class Value>
  requires(!is_hintable<Value>)
constexpr auto why_not_a_hint() {
  return make_explanation([] { return explain_hint<Value>(); });
}

template <class Given>
constexpr auto why_not_a_timeout() {
  return make_explanation([]() -> sentence {
    return "timeout(...) takes a duration, for example 5s or 20ms after `using namespace std::chrono_literals`";
  });
}

}  // namespace detail

/// Collects properties: `with(ring, timeout(5s), token)`.
template <class... Values>
  requires detail::are_options<Values...>
constexpr auto with(Values... values) {
  return options(detail::as_property(std::move(values))...);
}

/// Deleted: the template argument `Why` is the reason.
template <class... Values, auto Why = detail::why_not_options<Values...>()>
detail::not_understood with(Values... values) = delete;

/// Makes a property optional. Calls that do not support its kind ignore it. A hinted algorithm is also ignored where it
/// can't run, and a hinted wire type where the operation can't combine it or `require(rank_count_invariant)` forbids
/// rounding. `require(...)` can't be hinted, because a caller would not notice that a guarantee is missing.
template <class Value>
  requires detail::is_hintable<Value>
constexpr auto hint(Value value) {
  return detail::optional_property<detail::property_of<Value>>{detail::as_property(std::move(value))};
}

/// Deleted: the template argument `Why` is the reason.
template <class Value, auto Why = detail::why_not_a_hint<Value>()>
detail::not_understood hint(Value value) = delete;

/// The property that `timeout` returns.
struct timeout_property {
  using kind = hocket::kind::timeout;
  std::chrono::nanoseconds duration;  ///< how long the call may wait
};

/// Option that limits how long a call waits for peers: 0 or more. Default: the communicator's timeout, 60 s unless set.
template <class Rep, class Period>
constexpr timeout_property timeout(std::chrono::duration<Rep, Period> duration) noexcept {
  return {detail::saturated(duration)};
}

/// Deleted: a number has no unit.
template <class Given, auto Why = detail::why_not_a_timeout<Given>()>
detail::not_understood timeout(Given duration) = delete;

// ── Exactness ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Guarantee: all ranks get the same bits. Every call gives this guarantee.
struct same_on_all_ranks_t {};
inline constexpr same_on_all_ranks_t same_on_all_ranks{};

/// Guarantee: the same ranks, sizes and algorithm yield the same bits in every run. Algorithms with fixed order only.
struct run_to_run_t {};
inline constexpr run_to_run_t run_to_run{};

/// Guarantee: for a given number of ranks, the bits do not depend on algorithm, transport or kind of memory, because
/// contributions are combined in one binary tree over the ranks, in rank order. See operation/fixed_tree.hpp.
struct fixed_tree_t {};
inline constexpr fixed_tree_t fixed_tree{};

/// Guarantee: the bits do not depend on number of ranks, split of contributions among ranks, algorithm or order.
struct rank_count_invariant_t {};
inline constexpr rank_count_invariant_t rank_count_invariant{};

/// The property that `require` returns for a level of exactness.
template <class Level>
struct exactness_property {
  using kind = hocket::kind::exactness;
  /// The required level.
  using level = Level;
};

/// The levels that `require` accepts.
template <class Level>
concept exactness_level = std::same_as<Level, same_on_all_ranks_t> || std::same_as<Level, run_to_run_t> ||
                          std::same_as<Level, fixed_tree_t> || std::same_as<Level, rank_count_invariant_t>;

/// Requires a guarantee. The call does not compile if its type, operation or algorithm can't give the guarantee.
template <exactness_level Level>
constexpr exactness_property<Level> require(Level) noexcept {
  return {};
}

// ── Integrity ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Guarantee: if bytes change in transit, the call fails with `corrupted`, and the error names the sender.
struct checksummed_t {};
inline constexpr checksummed_t checksummed{};

/// The property that `require(checksummed)` returns.
struct integrity_property {
  using kind = hocket::kind::integrity;
};

/// Adds a checksum to each message of the call; the receiver verifies it before it uses the message. Selects only
/// algorithms that send messages, because data that peers read from each other's memory is not checked.
constexpr integrity_property require(checksummed_t) noexcept { return {}; }

// ── Wire type ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// The property of which `wire<Wire>` is the value.
template <class Wire>
struct wire_property {
  using kind = hocket::kind::wire;
  /// The type in which elements are sent.
  using type = Wire;
};

/// The type in which partial results are sent and stored: `with(wire<bfloat16>)` halves the bytes of a float reduction.
/// Partial results are still combined in the accumulator type of the elements.
template <class Wire>
inline constexpr wire_property<Wire> wire{};

HOCKET_END_NAMESPACE
