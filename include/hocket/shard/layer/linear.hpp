// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Linear layers whose weights are sharded along an axis: by their columns (outputs), or by their rows (inputs). The
/// two in sequence need one all_reduce forward and one backward, or an all_gather and a reduce_scatter of the same
/// bytes if activations between blocks are sharded along the tokens (sequence parallel).
///
/// | layer                    | input                          | weight     | output                          |
/// |--------------------------|--------------------------------|------------|---------------------------------|
/// | `column_parallel_linear` | invariant, shard<0>, replicated | shard<1>   | shard<1>                        |
/// | `row_parallel_linear`    | shard<1>                       | shard<0>   | invariant, shard<0>, replicated |
///
/// Activations are [tokens, features], weights [inputs, outputs]. An input with another placement is converted, and its
/// gradient is converted back; the two conversions are the transpose of each other by construction.
///
/// The caller provides the local products, one overload per product; `to` is zero before the call:
///
/// @code
/// struct products {
///   template <class X, class W, class Y> void operator()(hocket::multilinear<"tk,kn->tn">, X x, W w, Y to) const;  // x w
///   template <class D, class W, class G> void operator()(hocket::multilinear<"tn,kn->tk">, D d, W w, G to) const;  // d wT
///   template <class X, class D, class G> void operator()(hocket::multilinear<"tk,tn->kn">, X x, D d, G to) const;  // xT d
/// };
/// @endcode
/// `forward` and `backward` pass their options and call site to their collective.
/// Source of the layers: Shoeybi et al., Megatron-LM (2019); Korthikanti et al. (2022) for the sequence.
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/layer_diagnostics.hpp>
#include <hocket/shard/layer/placed_along.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/tensor.hpp>

#include <array>
#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE

/// Result of a layer's forward pass: its output, and the data for its backward pass. `saved` refers to the input, which
/// must outlive it, or holds the input if that was moved in.
template <class Output, class Saved>
struct forward_result {
  Output output;  ///< of the forward pass
  Saved saved;    ///< for the backward pass
};

/// Result of a linear layer's backward pass.
template <class Input, class Weight>
struct linear_gradients {
  Input input;    ///< gradient of the input
  Weight weight;  ///< gradient of the weight
};

namespace detail {

/// Saves a tensor for the backward pass: stores it if it was moved in, for example a temporary, or else borrows it.
template <class Tensor>
auto kept(Tensor&& tensor) {
  if constexpr (std::is_lvalue_reference_v<Tensor>) {
    return borrow(tensor);
  } else if constexpr (std::is_const_v<Tensor>) {
    return copy(tensor);
  } else {
    return Tensor(std::move(tensor));
  }
}

/// Returns `tensor`, converted to `To` along `Axis`; borrows it if no conversion is needed and it was not moved in.
template <axis_name Axis, class To, class Tensor, class Options = options<>>
auto entered(Tensor&& tensor, const Options& options = {},
             const std::source_location& site = std::source_location::current()) {
  if constexpr (std::is_same_v<typename std::remove_cvref_t<Tensor>::template placement_on<Axis>, To>) {
    return kept(std::forward<Tensor>(tensor));
  } else {
    return convert<Axis, To>(kept(std::forward<Tensor>(tensor)), options, site);
  }
}

/// Returns the gradient of a tensor that was entered with the placement `From` and used as `To`.
template <axis_name Axis, class From, class To, class Gradient, class Options = options<>>
auto left_backwards(Gradient&& gradient, const Options& options = {},
                    const std::source_location& site = std::source_location::current()) {
  if constexpr (std::is_same_v<From, To>) {
    return std::forward<Gradient>(gradient);
  } else {
    return backward_t<conversion<Axis, From, To>>()(std::forward<Gradient>(gradient), options, site);
  }
}

/// The placement of a layer's output.
template <class Output>
struct output_of_layer {
  static constexpr bool is_placement =
      std::is_same_v<Output, invariant> || std::is_same_v<Output, shard<0>> || std::is_same_v<Output, replicated>;
  static_assert(is_placement, "the output of a layer must have the placement invariant, shard<0> or replicated");
  using placement = placement_or_undetermined<Output>;
};

/// Returns the gradient of a partial sum that was converted to `Output`.
template <axis_name Axis, class Output, class Gradient, class Options>
auto before_sum(Gradient&& gradient, const Options& options, const std::source_location& site) {
  return backward_t<conversion<Axis, partial<sum>, Output>>()(std::move(gradient), options, site);
}

template <class Rule, class Math, class... Operands>
auto computed(const Math& math, const Operands&... operands) {
  return apply(
      Rule(),
      [&](auto... parts) {
        constexpr bool takes_parts = std::is_invocable_v<const Math&, Rule, decltype(parts)...>;
        static_assert(takes_parts,
                      "the function object of local products lacks this product: it must be callable, as const, with "
                      "the rule, two operands and the result, which are like mdspan, for each product of a layer");
        if constexpr (takes_parts) math(Rule(), parts...);
      },
      operands...);
}

/// The type in which elements of type T are summed: float for bfloat16, because a long sum of bfloat16 stops growing.
template <class T>
using sum_type_t = decltype(T() + T());

}  // namespace detail

/// A linear layer whose weight is sharded by its outputs along `Axis`: each rank computes some features of the output.
template <axis_name Axis>
struct column_parallel_linear {
  /// `x` is [tokens, inputs], invariant, replicated or shard<0> along `Axis`; `w` is [inputs, outputs] and shard<1>.
  /// The output is [tokens, outputs] and shard<1>. All-gathers `x` if it is shard<0>; otherwise no communication. Does
  /// not convert `w` along other axes: if tokens are sharded along "dp" and weights are invariant along it, pass
  /// `convert<"dp", replicated>(borrow(w))`, which needs no communication.
  template <class Math, detail::tensor_along<Axis, 2> Input, detail::tensor_along<Axis, 2> Weight,
            call_options Options = options<>>
    requires detail::is_pass<detail::column_parallel_forward_call<Axis>, Math, Input, Weight, Options>
  static auto forward(const Math& math, Input&& x, const Weight& w, const Options& options = {},
                      const std::source_location& site = std::source_location::current()) {
    using from = typename std::remove_cvref_t<Input>::template placement_on<Axis>;
    auto input = detail::entered<Axis, replicated>(std::forward<Input>(x), options, site);
    auto output = detail::computed<detail::product_rule>(math, input, w);
    using saved = saved_values<from, decltype(input)>;
    return forward_result<decltype(output), saved>{std::move(output), {std::move(input)}};
  }

  /// Computes the gradients of input and weight, with the placements that gradients of the arguments of `forward` have.
  /// The input's is all-reduced if the input was invariant, reduce-scattered if shard<0>, and partial if replicated.
  template <class Math, class Saved, detail::tensor_along<Axis, 2> Weight, detail::tensor_along<Axis, 2> Gradient,
            call_options Options = options<>>
    requires detail::is_pass<detail::column_parallel_backward_call<Axis>, Math, Saved, Weight, Gradient, Options>
  static auto backward(const Math& math, const Saved& saved, const Weight& w, const Gradient& gradient,
                       const Options& options = {},
                       const std::source_location& site = std::source_location::current()) {
    auto of_weight = detail::computed<detail::product_weight_gradient>(math, saved.input, gradient);
    auto of_input = detail::left_backwards<Axis, typename Saved::from, replicated>(
        detail::computed<detail::product_input_gradient>(math, gradient, w), options, site);
    return linear_gradients<decltype(of_input), decltype(of_weight)>{std::move(of_input), std::move(of_weight)};
  }

  // Deleted: the template arguments that the compiler prints explain why.
  template <class... Given, auto Why = detail::why_no_pass<detail::column_parallel_forward_call<Axis>, Given...>()>
  static detail::not_understood forward(const Given&...) = delete;
  template <class... Given, auto Why = detail::why_no_pass<detail::column_parallel_backward_call<Axis>, Given...>()>
  static detail::not_understood backward(const Given&...) = delete;

  template <class From, class Input>
  struct saved_values {
    using from = From;
    Input input;
  };
};

/// A linear layer whose weight is sharded by its inputs along `Axis`: each rank computes a summand of the output, and
/// the sum has the placement `Output`: invariant (all_reduce), shard<0> (reduce_scatter), or replicated.
template <axis_name Axis, class Output = invariant>
struct row_parallel_linear {
  using output_placement = typename detail::output_of_layer<Output>::placement;  ///< placement of the output

  /// `x` is [tokens, inputs] and shard<1> along `Axis`, `w` is [inputs, outputs] and shard<0>. To add a bias once, use
  /// `plus_bias` on the output.
  template <class Math, detail::tensor_along<Axis, 2> Input, detail::tensor_along<Axis, 2> Weight,
            call_options Options = options<>>
    requires detail::is_pass<detail::row_parallel_forward_call<Axis, output_placement>, Math, Input, Weight, Options>
  static auto forward(const Math& math, Input&& x, const Weight& w, const Options& options = {},
                      const std::source_location& site = std::source_location::current()) {
    auto input = detail::kept(std::forward<Input>(x));
    auto output =
        convert<Axis, output_placement>(detail::computed<detail::product_rule>(math, input, w), options, site);
    return forward_result<decltype(output), decltype(input)>{std::move(output), std::move(input)};
  }

  /// Computes the gradients of input and weight. No communication if the output was invariant; all-gathers `gradient`
  /// if it was shard<0>, and all-reduces it if it was replicated.
  template <class Math, detail::tensor_along<Axis, 2> Saved, detail::tensor_along<Axis, 2> Weight,
            detail::tensor_along<Axis, 2> Gradient, call_options Options = options<>>
    requires detail::is_pass<detail::row_parallel_backward_call<Axis, output_placement>, Math, Saved, Weight, Gradient,
                             Options>
  static auto backward(const Math& math, const Saved& x, const Weight& w, const Gradient& gradient,
                       const Options& options = {},
                       const std::source_location& site = std::source_location::current()) {
    const auto of_sum = detail::before_sum<Axis, output_placement>(borrow(gradient), options, site);
    auto of_weight = detail::computed<detail::product_weight_gradient>(math, x, of_sum);
    auto of_input = detail::computed<detail::product_input_gradient>(math, of_sum, w);
    return linear_gradients<decltype(of_input), decltype(of_weight)>{std::move(of_input), std::move(of_weight)};
  }

  // Deleted: the template arguments that the compiler prints explain why.
  template <class... Given,
            auto Why = detail::why_no_pass<detail::row_parallel_forward_call<Axis, output_placement>, Given...>()>
  static detail::not_understood forward(const Given&...) = delete;
  template <class... Given,
            auto Why = detail::why_no_pass<detail::row_parallel_backward_call<Axis, output_placement>, Given...>()>
  static detail::not_understood backward(const Given&...) = delete;
};

/// Returns `x` [tokens, features] plus `bias` [features]. No communication.
template <tensor_type Rows, tensor_type Bias>
  requires detail::is_pass<detail::plus_bias_call, Rows, Bias>
auto plus_bias(const Rows& x, const Bias& bias) {
  return apply(
      linear<"tn,n->tn">(),
      [](auto rows, auto added, auto to) {
        for (std::size_t t = 0; t < rows.extent(0); ++t) {
          for (std::size_t n = 0; n < rows.extent(1); ++n) {
            to(t, n) = static_cast<typename decltype(to)::value_type>(rows(t, n) + added(n));
          }
        }
      },
      x, bias);
}

/// Returns the gradient of the bias of `plus_bias` from that of its result: the sum of all rows. No communication.
template <tensor_type Gradient>
  requires detail::is_pass<detail::bias_gradient_call, Gradient>
auto bias_gradient(const Gradient& gradient) {
  return apply(
      linear<"tn->n">(),
      [](auto rows, auto to) {
        using value_type = typename decltype(to)::value_type;
        std::vector<detail::sum_type_t<value_type>> total(rows.extent(1));
        for (std::size_t t = 0; t < rows.extent(0); ++t) {
          for (std::size_t n = 0; n < rows.extent(1); ++n) total[n] += rows(t, n);
        }
        for (std::size_t n = 0; n < rows.extent(1); ++n) to(n) = static_cast<value_type>(total[n]);
      },
      gradient);
}

// Deleted: the template arguments that the compiler prints explain why.
template <class Rows, class Bias, auto Why = detail::why_no_pass<detail::plus_bias_call, Rows, Bias>()>
detail::not_understood plus_bias(const Rows&, const Bias&) = delete;
template <class Gradient, auto Why = detail::why_no_pass<detail::bias_gradient_call, Gradient>()>
detail::not_understood bias_gradient(const Gradient&) = delete;

HOCKET_END_NAMESPACE
