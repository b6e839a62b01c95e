// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The compiler's diagnostics for invalid arguments of layers: a sentence about the first mistake. Each `..._call` has
/// an `explain()` for the arguments of one pass of one layer; `why_no_pass` is the template argument of a deleted
/// overload: see shard/tensor_diagnostics.hpp.
#pragma once

#include <hocket/collective/host/argument_diagnostics.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/options.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/mesh/axis_diagnostics.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>
#include <hocket/shard/apply_diagnostics.hpp>
#include <hocket/shard/conversion_diagnostics.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/layer/placed_along.hpp>
#include <hocket/shard/option_diagnostics.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/tensor.hpp>

#include <array>
#include <cstddef>
#include <source_location>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

template <class Output, class Saved>
struct forward_result;

namespace detail {

// ── The arguments ──────────────────────────────────────────────────────────────────────────────────────────────────

template <class T>
inline constexpr bool is_forward_result = false;
template <class Output, class Saved>
inline constexpr bool is_forward_result<forward_result<Output, Saved>> = true;

/// Whether an argument is a tensor over a mesh without the axis.
template <axis_name Axis, class Given>
inline constexpr bool lacks_axis = false;
template <axis_name Axis, tensor_type Given>
inline constexpr bool lacks_axis<Axis, Given> = !is_along<Axis, Given>;

/// Returns whether the arguments include as many tensors as `Ranks`, but with other numbers of dimensions.
template <class... Given, std::size_t... Ranks>
constexpr bool other_ranks(std::index_sequence<Ranks...>) noexcept {
  constexpr std::array<std::size_t, sizeof...(Ranks)> wanted{Ranks...};
  std::size_t tensors = 0;
  bool differ = false;
  const auto look = [&]<class Each>(std::type_identity<Each>) {
    if constexpr (tensor_type<Each>) {
      differ = differ || (tensors < wanted.size() && wanted[tensors] != Each::rank);
      ++tensors;
    }
  };
  (look(std::type_identity<Given>()), ...);
  return differ && tensors == wanted.size();
}

/// Explains the arguments of a layer along `Axis` that needs tensors of `Ranks` dimensions and gets others.
template <axis_name Axis, std::size_t... Ranks>
struct layer_arguments {
  template <class... Given>
  static consteval sentence explain() {
    if ((is_forward_result<Given> || ...)) {
      return "a layer got the whole result of a forward pass: pass its .output to the next layer, and its .saved to "
             "backward";
    }
    if ((lacks_axis<Axis, Given> || ...)) return explain_missing_axis();
    if (other_ranks<Given...>(std::index_sequence<Ranks...>())) {
      return "a layer takes matrices: activations and their gradients [tokens, features], weights [inputs, outputs], "
             "logits [tokens, vocabulary], a table [vocabulary, features]; only the tokens of an embedding, and the "
             "targets and losses of a cross entropy, are vectors. View tensors of other dimensions as these";
    }
    return "a layer takes the function object of local products first if it has any, then tensors, then options; "
           "backward of column_parallel_linear and of a cross entropy takes the .saved of the forward pass, not its "
           ".output or input";
  }
};

/// Whether the arguments from `Index` on are valid after the tensors of a call: options, and a call site.
template <class Arguments, std::size_t Index>
inline constexpr bool ends_at =
    (!Arguments::template has<Index> || call_options<typename Arguments::template plain<Index>>)&&(
        !Arguments::template has<Index + 1> ||
        std::is_same_v<typename Arguments::template plain<Index + 1>,
                       std::source_location>)&&!Arguments::template has<Index + 2>;

/// The arguments of a pass: `First` others, tensors of `Ranks` dimensions, and options. `Pass` has
/// `explain<Options, Tensors...>()`.
template <axis_name Axis, class Pass, std::size_t First, std::size_t... Ranks>
struct pass_call {
  template <class... Given>
  static consteval sentence explain() {
    return explain_tensors<Given...>(std::make_index_sequence<sizeof...(Ranks)>());
  }

 private:
  template <class... Given, std::size_t... Index>
  static consteval sentence explain_tensors(std::index_sequence<Index...>) {
    using all = argument_list<Given...>;
    constexpr std::size_t last = First + sizeof...(Ranks);
    if constexpr ((tensor_along<typename all::template plain<First + Index>, Axis, Ranks> && ...) &&
                  ends_at<all, last>) {
      using given_options = std::conditional_t<all::template has<last>, typename all::template plain<last>, options<>>;
      return Pass::template explain<given_options, typename all::template plain<First + Index>...>();
    } else {
      return layer_arguments<Axis, Ranks...>::template explain<Given...>();
    }
  }
};

/// Returns the mistake in the options of a pass that converts elements of T from the placement `From` to `To`.
template <class From, class To, class T, class Options>
consteval sentence explain_pass_options() {
  return explain_host_options<conversion_options<From, To, std::remove_const_t<T>>, Options>();
}

/// The same for the gradient of a partial sum that was converted to `Output`.
template <class Output, class T, class Options>
consteval sentence explain_gradient_of_sum() {
  return explain_pass_options<gradient_placement_t<Output>, gradient_placement_t<partial<sum>>, T, Options>();
}

/// The type of a tensor that is placed as `To` along `Axis`.
template <axis_name Axis, class To, class Tensor>
using placed_along_t =
    placed_as<Tensor, typename with_placement<Tensor::axes::find(Axis), To, typename Tensor::placements_type>::type>;

// ── Linear layers ──────────────────────────────────────────────────────────────────────────────────────────────────

using product_rule = multilinear<"tk,kn->tn">;
using product_input_gradient = multilinear<"tn,kn->tk">;
using product_weight_gradient = multilinear<"tk,tn->kn">;

/// Explains a mistake in an input, a weight and a gradient. `Input` and `Gradient` are void if absent.
template <axis_name Axis, class Input, class Weight, class Gradient = void>
consteval sentence explain_column_parallel() {
  if constexpr (!std::is_void_v<Input>) {
    if (!is_placed_along<Axis, Input, invariant, replicated, shard<0>>()) {
      return "the input of a column-parallel layer must be invariant, replicated or shard<0> along the layer's axis: "
             "reduce or gather it first";
    }
  }
  if (!is_placed_along<Axis, Weight, shard<1>>()) {
    return "the weight of a column-parallel layer must be cut by its outputs: shard<1> along its axis";
  }
  if constexpr (!std::is_void_v<Gradient>) {
    if (!is_placed_along<Axis, Gradient, shard<1>>()) {
      return "the gradient of a column-parallel layer's output must be placed like the output: shard<1> along its axis";
    }
    return {};
  } else {
    return explain_application<void, product_rule, placed_along_t<Axis, replicated, Input>, Weight>();
  }
}

template <axis_name Axis>
struct column_parallel_forward {
  template <class Options, class Input, class Weight>
  static consteval sentence explain() {
    constexpr sentence wrong = explain_column_parallel<Axis, Input, Weight>();
    if constexpr (wrong) {
      return wrong;
    } else {
      return explain_pass_options<typename Input::template placement_on<Axis>, replicated, typename Input::element_type,
                                  Options>();
    }
  }
};
/// (math, input, weight, options)
template <axis_name Axis>
using column_parallel_forward_call = pass_call<Axis, column_parallel_forward<Axis>, 1, 2, 2>;

/// True for what the forward pass saves for the backward pass.
template <class Saved>
inline constexpr bool is_saved_input = requires { typename Saved::from; };

template <axis_name Axis, class Saved>
struct column_parallel_backward {
  template <class Options, class Weight, class Gradient>
  static consteval sentence explain() {
    return first_of({explain_column_parallel<Axis, void, Weight, Gradient>(),
                     explain_pass_options<partial<sum>, gradient_placement_t<typename Saved::from>,
                                          typename Gradient::element_type, Options>()});
  }
};
/// (math, saved, weight, gradient, options)
template <axis_name Axis>
struct column_parallel_backward_call {
  template <class... Given>
  static consteval sentence explain() {
    using saved = typename argument_list<Given...>::template plain<1>;
    if constexpr (is_saved_input<saved>) {
      return pass_call<Axis, column_parallel_backward<Axis, saved>, 2, 2, 2>::template explain<Given...>();
    } else {
      return layer_arguments<Axis, 2, 2>::template explain<Given...>();
    }
  }
};

/// Explains a mistake in an input, a weight and a gradient (void if absent) of a layer whose output is `Output`.
template <axis_name Axis, class Output, class Input, class Weight, class Gradient = void>
consteval sentence explain_row_parallel() {
  if (!is_placed_along<Axis, Input, shard<1>>()) {
    return "the input of a row-parallel layer must be cut by its features: shard<1> along its axis";
  }
  if (!is_placed_along<Axis, Weight, shard<0>>()) {
    return "the weight of a row-parallel layer must be cut by its inputs: shard<0> along its axis";
  }
  if constexpr (!std::is_void_v<Gradient>) {
    if (!is_placed_along<Axis, Gradient, gradient_placement_t<Output>>()) {
      return "the gradient of a row-parallel layer's output must be placed like the output if that is invariant or "
             "shard<d>, and must be partial<sum> if the output is replicated";
    }
    return {};
  } else {
    return explain_application<void, product_rule, Input, Weight>();
  }
}

template <axis_name Axis, class Output>
struct row_parallel_forward {
  template <class Options, class Input, class Weight>
  static consteval sentence explain() {
    return first_of({explain_row_parallel<Axis, Output, Input, Weight>(),
                     explain_pass_options<partial<sum>, Output, typename Input::element_type, Options>()});
  }
};
template <axis_name Axis, class Output>
struct row_parallel_backward {
  template <class Options, class Input, class Weight, class Gradient>
  static consteval sentence explain() {
    return first_of({explain_row_parallel<Axis, Output, Input, Weight, Gradient>(),
                     explain_gradient_of_sum<Output, typename Gradient::element_type, Options>()});
  }
};
/// (math, input, weight, options)
template <axis_name Axis, class Output>
using row_parallel_forward_call = pass_call<Axis, row_parallel_forward<Axis, Output>, 1, 2, 2>;
/// (math, input, weight, gradient, options)
template <axis_name Axis, class Output>
using row_parallel_backward_call = pass_call<Axis, row_parallel_backward<Axis, Output>, 1, 2, 2, 2>;

/// (rows, bias), or (gradient of their sum)
template <class Rule>
struct bias_call {
  template <class... Given>
  static consteval sentence explain() {
    if constexpr ((tensor_type<Given> && ...)) {
      return explain_application<void, Rule, Given...>();
    } else {
      return "a bias, the rows that it is added to, and their gradient must be tensors, whose types specify placements";
    }
  }
};
using plus_bias_call = bias_call<linear<"tn,n->tn">>;
using bias_gradient_call = bias_call<linear<"tn->n">>;

// ── Layers sharded by vocabulary ──────────────────────────────────────────────────────────────────────────────────

/// Explains a mistake in tokens, a table and a gradient (void if absent) of an embedding whose output is `Output`.
template <axis_name Axis, class Output, class Tokens, class Table, class Gradient = void>
consteval sentence explain_embedding() {
  if (!std::is_integral_v<typename Tokens::element_type>)
    return "the tokens of an embedding must be integers, because each is the number of a row of the table";
  if (!is_placed_along<Axis, Tokens, invariant, replicated>()) {
    return "the tokens of a vocabulary-parallel embedding must be invariant or replicated along its axis: each rank "
           "looks up all of them";
  }
  if (!is_placed_along<Axis, Table, shard<0>>()) {
    return "the table of a vocabulary-parallel embedding must be cut by its rows: shard<0> along its axis";
  }
  if constexpr (!std::is_void_v<Gradient>) {
    if (!is_placed_along<Axis, Gradient, gradient_placement_t<Output>>()) {
      return "the gradient of a vocabulary-parallel embedding must be placed like the output if that is invariant or "
             "shard<d>, and must be partial<sum> if the output is replicated";
    }
    return {};
  } else {
    return explain_application<std::remove_const_t<typename Table::element_type>, multilinear<"t,vh->th">,
                               placed_along_t<Axis, replicated, Tokens>, Table>();
  }
}

template <axis_name Axis, class Output>
struct embedding_forward {
  template <class Options, class Tokens, class Table>
  static consteval sentence explain() {
    return first_of({explain_embedding<Axis, Output, Tokens, Table>(),
                     explain_pass_options<partial<sum>, Output, typename Table::element_type, Options>()});
  }
};
template <axis_name Axis, class Output>
struct embedding_backward {
  template <class Options, class Tokens, class Table, class Gradient>
  static consteval sentence explain() {
    return first_of({explain_embedding<Axis, Output, Tokens, Table, Gradient>(),
                     explain_gradient_of_sum<Output, typename Gradient::element_type, Options>()});
  }
};
/// (tokens, table, options)
template <axis_name Axis, class Output>
using embedding_forward_call = pass_call<Axis, embedding_forward<Axis, Output>, 0, 1, 2>;
/// (tokens, table, gradient, options)
template <axis_name Axis, class Output>
using embedding_backward_call = pass_call<Axis, embedding_backward<Axis, Output>, 0, 1, 2, 2>;

template <axis_name Axis>
struct cross_entropy_forward {
  template <class Options, class Logits, class Targets>
  static consteval sentence explain() {
    if (!is_floating<std::remove_const_t<typename Logits::element_type>>) {
      return "the logits of a cross entropy must be of a floating type: exponentials and logarithms of integers would "
             "be truncated, and complex numbers have no maximum";
    }
    if (!Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::observer, kind::integrity>) {
      return "a cross entropy accepts only an algorithm, timeout(...), a stop token, observe_steps(...) and "
             "require(checksummed): remove the other options, because the type of its sums over ranks supports neither "
             "wire types nor exact sums";
    }
    if (constexpr sentence wrong = explain_algorithm<plan::collective_kind::all_reduce, Options>(); wrong) return wrong;
    if (!is_placed_along<Axis, Logits, shard<1>>()) {
      return "the logits of a vocabulary-parallel cross entropy must be cut by the vocabulary: shard<1> along its "
             "axis; with whole logits, every entry would count once per rank";
    }
    if (!is_placed_along<Axis, Targets, invariant>()) {
      return "the targets of a vocabulary-parallel cross entropy must be invariant along its axis";
    }
    if (!std::is_integral_v<typename Targets::element_type>)
      return "the targets of a cross entropy must be integers, because each is a position in the vocabulary";
    return {};
  }
};
/// (logits, targets, options)
template <axis_name Axis>
using cross_entropy_forward_call = pass_call<Axis, cross_entropy_forward<Axis>, 0, 2, 1>;

/// (saved, gradient)
template <axis_name Axis>
struct cross_entropy_backward_call {
  template <class... Given>
  static consteval sentence explain() {
    using all = argument_list<Given...>;
    using saved = typename all::template plain<0>;
    using gradient = typename all::template plain<1>;
    if constexpr (!requires(const saved& from_forward) { from_forward.largest; } || !tensor_along<gradient, Axis, 1> ||
                  all::template has<2>) {
      return layer_arguments<Axis, 1>::template explain<Given...>();
    } else if constexpr (!is_placed_along<Axis, gradient, invariant>()) {
      return "the gradient of a vocabulary-parallel cross entropy's losses must be placed like the losses: invariant "
             "along its axis";
    } else {
      return {};
    }
  }
};

// ── The calls ──────────────────────────────────────────────────────────────────────────────────────────────────────

/// Whether the arguments of one pass are valid: `Call` is one of the above.
template <class Call, class... Given>
inline constexpr bool is_pass = !Call::template explain<std::remove_cvref_t<Given>...>();

template <class Call, class... Given>
  requires(!is_pass<Call, Given...>)
constexpr auto why_no_pass() {
  return make_explanation([] { return Call::template explain<std::remove_cvref_t<Given>...>(); });
}

}  // namespace detail
HOCKET_END_NAMESPACE
