// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A reference to any function object of one signature.
///
/// What only happens when a call fails need not be compiled anew for each kind of call: such functions take their
/// caller's lambdas through this, and exist once.
#pragma once

#include <hocket/core/config.hpp>

#include <memory>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Signature>
class function_view;

/// Refers to what it is made of, which must live longer: use it for parameters only.
template <class Result, class... Arguments>
class function_view<Result(Arguments...)> {
 public:
  template <class Function>
    requires(!std::is_same_v<std::remove_cvref_t<Function>, function_view> &&
             std::is_invocable_r_v<Result, const Function&, Arguments...>)
  function_view(const Function& function) noexcept
      : function_(std::addressof(function)), call_([](const void* object, Arguments... arguments) -> Result {
          return (*static_cast<const Function*>(object))(std::forward<Arguments>(arguments)...);
        }) {}

  Result operator()(Arguments... arguments) const { return call_(function_, std::forward<Arguments>(arguments)...); }

 private:
  const void* function_;
  Result (*call_)(const void*, Arguments...);
};

}  // namespace detail
HOCKET_END_NAMESPACE
