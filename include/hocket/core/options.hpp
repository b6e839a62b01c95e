// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// What a caller may say about one call, as one value: `with(ring, timeout(5s), require(run_to_run))`.
///
/// Each thing said is a *property*, a small type with a `kind`. A collective names the kinds that it can use; any other
/// is a compile error, so that nothing that the caller relies on is ignored silently. `hint(p)` makes p a wish: it is
/// used where it can be, and ignored elsewhere. What is required is no wish: `hint(require(...))` does not compile.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/deadline.hpp>
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
struct hinted {
  using kind = typename Property::kind;
  Property wish;
};

template <class Property>
struct is_hinted : std::false_type {};
template <class Property>
struct is_hinted<hinted<Property>> : std::true_type {};

/// Anything that can be asked whether to stop: `std::stop_token` above all.
template <class Token>
concept stop_token_like = std::copy_constructible<Token> && requires(const Token& token) {
  { token.stop_requested() } -> std::convertible_to<bool>;
};

template <class Kind, class... Properties>
inline constexpr int count_of_kind = (0 + ... + static_cast<int>(std::is_same_v<Kind, typename Properties::kind>));

template <class Kind, class... Kinds>
inline constexpr bool is_one_of = (std::is_same_v<Kind, Kinds> || ...);

/// Each property as a base class of its own, found by its kind.
template <class Property>
struct held {
  Property value;
};

}  // namespace detail

/// The properties of one call. Made by `with`.
template <property... Properties>
class options : detail::held<Properties>... {
  static_assert(((detail::count_of_kind<typename Properties::kind, Properties...> == 1) && ...),
                "with(...): two properties of the same kind; say each thing once");

 public:
  constexpr options()
    requires(sizeof...(Properties) == 0)
  = default;
  /// A template, so that `options()` is never ambiguous: after another error, g++ takes all constraints for satisfied.
  template <class = void>
  constexpr explicit options(Properties... values)
    requires(sizeof...(Properties) > 0)
      : detail::held<Properties>{std::move(values)}... {}

  template <class Kind>
  static constexpr bool has = detail::count_of_kind<Kind, Properties...> > 0;

  /// The property of `Kind`, which there must be, hinted or not.
  template <class Kind>
  constexpr const auto& at() const noexcept {
    return find<Kind, Properties...>();
  }

  /// A copy of it; `fallback` if there is none.
  template <class Kind, class Fallback>
  constexpr auto get(Fallback fallback) const {
    if constexpr (has<Kind>) {
      return at<Kind>();
    } else {
      return fallback;
    }
  }

  /// True if every property is of one of `Kinds`, or only hinted.
  template <class... Kinds>
  static constexpr bool only =
      ((detail::is_hinted<Properties>::value || detail::is_one_of<typename Properties::kind, Kinds...>)&&...);

  /// These properties, and `one`.
  template <class More>
  constexpr options<Properties..., More> and_also(More one) const {
    return options<Properties..., More>(static_cast<const detail::held<Properties>&>(*this).value..., std::move(one));
  }

  /// These properties, but for that of `Kind`.
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
        std::tuple_cat(unless<Kind>(static_cast<const detail::held<Properties>&>(*this).value)...));
  }

  /// Whether the property of `Kind` is only a hint.
  template <class Kind>
  static constexpr bool is_hint =
      ((std::is_same_v<typename Properties::kind, Kind> && detail::is_hinted<Properties>::value) || ...);

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
    } else if constexpr (detail::is_hinted<First>::value) {
      return static_cast<const detail::held<First>&>(*this).value.wish;
    } else {
      return static_cast<const detail::held<First>&>(*this).value;
    }
  }
};

template <property... Properties>
options(Properties...) -> options<Properties...>;

namespace detail {

template <class T>
inline constexpr bool is_options = false;
template <class... Properties>
inline constexpr bool is_options<options<Properties...>> = true;

}  // namespace detail

/// What calls take as their options: made by `with`, and by nothing else.
template <class T>
concept call_options = detail::is_options<T>;

namespace detail {

/// Stands for what was not understood, so that there is one error alone.
struct not_a_token {
  constexpr bool stop_requested() const noexcept { return false; }
};

template <class Value>
constexpr auto as_property(Value value) {
  if constexpr (property<Value>) {
    return value;
  } else if constexpr (stop_token_like<Value>) {
    return stop_property<Value>{std::move(value)};
  } else {
    constexpr bool is_duration = requires { typename Value::period; };
    static_assert(!is_duration, "with(...): a duration is said with what it limits: with(timeout(5s))");
    static_assert(is_duration || property<Value>,
                  "with(...): not a property. Properties are algorithms (ring, two_shot, ...), timeout(...), "
                  "wire<T>, require(...), hint(...), observe(...) and stop tokens");
    return stop_property<not_a_token>{};
  }
}

}  // namespace detail

/// Collects properties: `with(ring, timeout(5s), token)`.
template <class... Values>
constexpr auto with(Values... values) {
  return options(detail::as_property(std::move(values))...);
}

/// A property that is ignored where it can't be used: by a call that does not know its kind; an algorithm where it can't
/// run; a wire type where the operation can't combine what has travelled in it, or `require(rank_count_invariant)` lets
/// nothing be rounded. `require(...)` can't be hinted: whoever requires relies on it, and would not see it ignored.
template <class Value>
constexpr auto hint(Value value) {
  auto wish = detail::as_property(std::move(value));
  using kind_of_wish = typename decltype(wish)::kind;
  static_assert(
      !detail::is_one_of<kind_of_wish, kind::exactness, kind::integrity>,
      "hint(require(...)): what is required can't be a wish; say require(...) where it must hold, and nothing "
      "elsewhere");
  return detail::hinted<decltype(wish)>{std::move(wish)};
}

struct timeout_property {
  using kind = hocket::kind::timeout;
  std::chrono::nanoseconds duration;
};

/// How long the call may wait for its peers: 0 or more. The default is the communicator's, 60 s unless it was set.
template <class Rep, class Period>
constexpr timeout_property timeout(std::chrono::duration<Rep, Period> duration) noexcept {
  return {detail::saturated(duration)};
}

/// Does not compile: a number has no unit.
template <class Number>
  requires std::is_arithmetic_v<Number>
constexpr timeout_property timeout(Number) noexcept {
  constexpr bool has_a_unit = !std::is_arithmetic_v<Number>;
  static_assert(has_a_unit,
                "timeout(...) takes a duration, as 5s or 20ms after `using namespace std::chrono_literals`");
  return {};
}

// ── Exactness ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// All ranks get the same bits. Always so.
struct same_on_all_ranks_t {};
inline constexpr same_on_all_ranks_t same_on_all_ranks{};

/// Same ranks, same sizes, same algorithm: same bits, run after run. So for every algorithm whose order is fixed.
struct run_to_run_t {};
inline constexpr run_to_run_t run_to_run{};

/// Same bits for any algorithm, transport and kind of memory, at the same number of ranks: contributions are combined in one
/// binary tree over the ranks, in their order. See operation/fixed_tree.hpp.
struct fixed_tree_t {};
inline constexpr fixed_tree_t fixed_tree{};

/// Same bits for any number of ranks, any split of the contributions among them, any algorithm and any order.
struct rank_count_invariant_t {};
inline constexpr rank_count_invariant_t rank_count_invariant{};

template <class Level>
struct exactness_property {
  using kind = hocket::kind::exactness;
  using level = Level;
};

template <class Level>
concept exactness_level = std::same_as<Level, same_on_all_ranks_t> || std::same_as<Level, run_to_run_t> ||
                          std::same_as<Level, fixed_tree_t> || std::same_as<Level, rank_count_invariant_t>;

/// States what the result must satisfy. What type, operation and algorithm can't keep does not compile.
template <exactness_level Level>
constexpr exactness_property<Level> require(Level) noexcept {
  return {};
}

// ── Integrity ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Bytes that change on their way are found: the call fails with `corrupted`, and names whose they were.
struct checksummed_t {};
inline constexpr checksummed_t checksummed{};

struct integrity_property {
  using kind = hocket::kind::integrity;
};

/// Each message of the call carries a checksum, which its receiver verifies before it uses any of it. Chooses among
/// algorithms that send messages: what peers read from each other's memory is not checked.
constexpr integrity_property require(checksummed_t) noexcept { return {}; }

// ── Wire type ──────────────────────────────────────────────────────────────────────────────────────────────────────

template <class Wire>
struct wire_property {
  using kind = hocket::kind::wire;
  using type = Wire;
};

/// In which type partial results travel and are stored: `with(wire<bfloat16>)` halves the bytes of a float reduction.
/// They are combined in the accumulator type of the elements all the same.
template <class Wire>
inline constexpr wire_property<Wire> wire{};

HOCKET_END_NAMESPACE
