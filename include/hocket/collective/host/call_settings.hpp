// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The options of one call, given by `with(...)`, as plain values. A call converts its options once, when it begins, so
/// that the code that plans, runs and waits is compiled once for all combinations of options.
///
/// The wire type is not converted, because it determines types, and of the exactness only what the choice of an algorithm
/// depends on: see collective/host/reduce.hpp.
#pragma once

#include <hocket/core/agreement.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/engine/step_observer.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/selection/algorithm.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// The option that `observe_steps` returns: see core/options.hpp.
struct observer_property {
  using kind = hocket::kind::observer;
  step_observer to;  ///< the function that receives completed actions
};

/// Option that calls `to.on_step` after each action of the call's plan on this rank: see engine/step_observer.hpp.
constexpr observer_property observe_steps(step_observer to) noexcept { return {to}; }

namespace detail {

/// Whether the ranks of a call compare their calls before data moves: see collective/host/comparison.hpp.
inline constexpr bool compares_first = HOCKET_ASSERTION_LEVEL >= 3;

/// Asks the caller's stop token, of any type, whether to stop. Without a token the answer is always false.
class stop_check {
 public:
  /// `token` must outlive the result.
  template <class Token>
  static stop_check of(const Token& token) noexcept {
    stop_check result;
    result.token_ = &token;
    result.requested_ = [](const void* asked) -> bool { return static_cast<const Token*>(asked)->stop_requested(); };
    result.copy_ = [](const void* asked) -> std::shared_ptr<const void> {
      return std::make_shared<Token>(*static_cast<const Token*>(asked));
    };
    return result;
  }

  bool operator()() const { return token_ != nullptr && requested_(token_); }

  /// Returns a check that asks a copy of the token. `copied` receives the copy, and must outlive the result.
  stop_check of_copy(std::shared_ptr<const void>& copied) const {
    stop_check result = *this;
    if (token_ != nullptr) {
      copied = copy_(token_);
      result.token_ = copied.get();
    }
    return result;
  }

 private:
  const void* token_ = nullptr;
  bool (*requested_)(const void*) = nullptr;
  std::shared_ptr<const void> (*copy_)(const void*) = nullptr;
};

/// True if calls with these options must choose the same algorithm in each run.
template <class Options>
constexpr bool has_repeatable_choice() noexcept {
  if constexpr (Options::template has<kind::exactness>) {
    using exactness = std::remove_cvref_t<decltype(std::declval<const Options&>().template at<kind::exactness>())>;
    return !std::is_same_v<typename exactness::level, same_on_all_ranks_t>;
  } else {
    return false;
  }
}

/// The options of one call. Refers to the caller's options, which must outlive this object.
struct call_settings {
  std::optional<std::chrono::nanoseconds> timeout;  ///< if empty, the communicator's applies
  stop_check stop;
  step_observer observer;
  const plan::any_algorithm* algorithm = nullptr;  ///< null: the call chooses
  bool is_hint = false;                            ///< the call chooses if the algorithm can't run
  bool checks_limits = false;                      ///< check `algorithm` against the limits of the engine
  bool checksummed = false;                        ///< messages carry checksums: `require(checksummed)`
  bool has_repeatable_choice = false;              ///< of an algorithm: see the function above
  std::uint32_t agreement = 0;                     ///< hash that must be equal on all ranks: see core/agreement.hpp

  /// Returns whether the caller passed a negative timeout.
  bool has_negative_timeout() const noexcept { return timeout && timeout->count() < 0; }
};

/// The settings of a call without options.
inline constexpr call_settings default_settings{};

inline const call_settings& settings_of(const options<>&,
                                        const std::optional<plan::any_algorithm>& = std::nullopt) noexcept {
  return default_settings;
}

/// Converts the options. `named`, the result of `named_plan`, must outlive the result; calls without a plan omit it.
template <class Options>
call_settings settings_of(const Options& given,
                          const std::optional<plan::any_algorithm>& named = std::nullopt) noexcept {
  call_settings result;
  if constexpr (Options::template has<kind::timeout>) result.timeout = given.template at<kind::timeout>().duration;
  if constexpr (Options::template has<kind::stop>) result.stop = stop_check::of(given.template at<kind::stop>().token);
  if constexpr (Options::template has<kind::observer>) result.observer = given.template at<kind::observer>().to;
  if constexpr (Options::template has<kind::algorithm>) {
    using algorithm_type = std::remove_cvref_t<decltype(given.template at<kind::algorithm>())>;
    if (named) result.algorithm = &*named;
    result.is_hint = Options::template is_hint<kind::algorithm>;
    result.checks_limits = std::is_same_v<algorithm_type, own_plan> || std::is_same_v<algorithm_type, push_t>;
  }
  result.checksummed = Options::template has<kind::integrity>;
  result.has_repeatable_choice = has_repeatable_choice<Options>();
  result.agreement = agreement_of(given);
  return result;
}

/// Returns the plan that the options name for a collective of `Kind`, if any.
template <plan::collective_kind Kind, class Options>
std::optional<plan::any_algorithm> named_plan([[maybe_unused]] const Options& given, [[maybe_unused]] int root) {
  if constexpr (Options::template has<kind::algorithm>) {
    const auto& named = given.template at<kind::algorithm>();
    using algorithm_type = std::remove_cvref_t<decltype(named)>;
    if constexpr (std::is_same_v<algorithm_type, own_plan>) {
      return named.chosen;
    } else if constexpr (has_algorithm<Kind, algorithm_type>) {
      return plan_of<Kind>::get(named, root);
    }
  }
  return std::nullopt;
}

}  // namespace detail
HOCKET_END_NAMESPACE
