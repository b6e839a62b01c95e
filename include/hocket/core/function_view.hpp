// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// A reference to any function object of one signature.
///
/// Code that runs only when a call fails need not be compiled for each kind of call. Such functions take their caller's
/// lambdas as `function_view`, and are compiled once.
#pragma once

#include <hocket/core/config.hpp>

#include <memory>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Signature>
class function_view;

/// Refers to the function object that it is constructed from, which must outlive it: use it only for parameters.
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
