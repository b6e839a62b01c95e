// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostic for a type that lacks something to be a stage of a pipeline: one sentence about the first
/// thing that it lacks. `why_no_stage` is the template argument of a deleted overload: see core/explanation.hpp.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/pipeline/stage.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace pipeline {

namespace detail {

using hocket::detail::make_explanation;
using hocket::detail::sentence;

/// A type that resembles a stage, but may lack something.
template <class Given>
concept meant_as_stage = requires { typename Given::input_type; } || requires { typename Given::output_type; } ||
                         requires { &Given::forward; };

template <class Given>
concept names_elements = requires {
  typename Given::input_type;
  typename Given::output_type;
};

/// A type with element types that has both sizes.
template <class Given>
concept has_stage_sizes = requires(Given& given) {
  { given.input_size() } -> std::convertible_to<std::size_t>;
  { given.output_size() } -> std::convertible_to<std::size_t>;
};

/// A type with element types that has `forward`.
template <class Given>
concept has_forward = requires(Given& given, std::span<const typename Given::input_type> in,
                               std::span<typename Given::output_type> out) { given.forward(0, in, out); };

/// Returns the first thing that `Given` lacks to be a stage.
template <class Given>
consteval sentence explain_stage() {
  if constexpr (std::is_const_v<Given>) {
    return "a stage can't be const: its passes change it";
  } else if constexpr (!names_elements<Given>) {
    return "a stage must declare its element types: using input_type = float; using output_type = float;";
  } else if constexpr (!stage_element<typename Given::input_type> || !stage_element<typename Given::output_type>) {
    return "input_type and output_type of a stage must be trivially copyable, with at most the alignment of a cache "
           "line";
  } else if (!has_stage_sizes<Given>) {
    return "a stage must return its numbers of input and output elements per microbatch, 0 if it has none: "
           "std::size_t input_size() const; std::size_t output_size() const;";
  } else if (!has_forward<Given>) {
    return "a stage must have void forward(int microbatch, std::span<const input_type> in, std::span<output_type> out)";
  } else if (!has_backward<Given> && !has_gradients_apart<Given>) {
    return "a stage must have void backward(int microbatch, std::span<const input_type> in, std::span<const "
           "output_type> out_gradient, std::span<input_type> in_gradient), or input_gradient with the same parameters "
           "and weight_gradient with all of them except the last";
  }
  return {};
}

template <class Given>
  requires(!stage<Given> && meant_as_stage<Given>)
constexpr auto why_no_stage() {
  return make_explanation([] { return explain_stage<Given>(); });
}

}  // namespace detail
}  // namespace pipeline
HOCKET_END_NAMESPACE
