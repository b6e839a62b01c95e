// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Error messages of the compiler for an invalid call of `norm`: each describes the first error in its arguments.
/// `why_no_norm` is the template argument of a deleted overload: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <functional>
#include <source_location>
#include <tuple>
#include <type_traits>

HOCKET_BEGIN_NAMESPACE
namespace detail {

template <class Placed>
constexpr bool any_partial() noexcept {
  for (const placement& each : Placed::values) {
    if (each.partial()) return true;
  }
  return false;
}

template <class Placed>
constexpr bool any_varying() noexcept {
  for (const placement& each : Placed::values) {
    if (each.kind == placement_kind::varying) return true;
  }
  return false;
}

template <class Tensor>
consteval sentence explain_norm_of_one() {
  using placed = typename Tensor::placements_type;
  if (any_partial<placed>()) {
    return "the norm of partial results is not the norm of the whole: reduce the tensor first";
  }
  if (any_varying<placed>()) {
    return "varying data may be copies, slices or summands, so their norm is unknown: make the tensor with shard<d> "
           "for slices, or with replicated or invariant for copies, and reduce summands first";
  }
  if (!requires(const typename Tensor::element_type& each) { static_cast<double>(each); }) {
    return "the norm needs elements that can be converted to double: store complex numbers as real and imaginary "
           "parts, along a dimension of the tensor";
  }
  return {};
}

template <class First, class... Rest>
consteval sentence explain_norm_of() {
  if (!(std::is_same_v<typename First::mesh_type, typename Rest::mesh_type> && ...)) {
    return "the tensors are on different meshes: call squared_norm for each mesh, and add the results";
  }
  return first_of({explain_norm_of_one<First>(), explain_norm_of_one<Rest>()...});
}

/// The options of a norm, whose squares are summed by an all_reduce.
using norm_options = reduction_options<plan::collective_kind::all_reduce, std::plus<>, double>;

template <class... Tensors>
inline constexpr bool have_norm = !explain_norm_of<std::remove_const_t<Tensors>...>();

/// The arguments of a call. Specializations check arguments of the right form; all others are rejected.
template <class... Given>
struct norm_call {
  static consteval sentence explain() {
    return "a norm takes tensors, whose types state which elements are copies: pass the tensors themselves, not their "
           "elements or views, or a tuple of tensors, as std::tie returns, and then options";
  }
};
template <class... Tensors>
  requires(sizeof...(Tensors) > 0 && (tensor_type<Tensors> && ...))
struct norm_call<Tensors...> {
  static consteval sentence explain() { return explain_norm_of<Tensors...>(); }
};
template <tensor_type Tensor>
struct norm_call<Tensor, std::source_location> : norm_call<Tensor> {};
template <tensor_type... Tensors, class... Rest>
  requires(sizeof...(Tensors) > 0 && ends_call<Rest...>)
struct norm_call<std::tuple<Tensors&...>, Rest...> {
  static consteval sentence explain() {
    return first_of(
        {explain_norm_of<std::remove_const_t<Tensors>...>(), explain_options_at_end<norm_options, Rest...>()});
  }
};

template <class... Given>
  requires(static_cast<bool>(norm_call<Given...>::explain()))
constexpr auto why_no_norm() {
  return make_explanation([] { return norm_call<Given...>::explain(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
