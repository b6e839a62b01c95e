// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// An embedding whose table is sharded by the vocabulary along an axis: each rank looks up the tokens whose rows it
/// has, and the sum over the ranks is the embedding. One collective forward; none backward, or the transpose of the
/// forward collective if the output is sharded along the tokens. Source: Shoeybi et al., Megatron-LM (2019).
#pragma once

#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/text.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/apply.hpp>
#include <hocket/shard/array_view.hpp>
#include <hocket/shard/convert.hpp>
#include <hocket/shard/layer/layer_diagnostics.hpp>
#include <hocket/shard/layer/linear.hpp>
#include <hocket/shard/layer/placed_along.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/rules.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Raises `invalid_argument` unless all token numbers are rows of the table.
template <class Tokens>
void check_tokens(const Tokens& tokens, std::size_t vocabulary, const std::source_location& site) {
  static_cast<void>(checked_mesh(tokens.mesh()));
  for (std::size_t i = 0; i < tokens.elements().size(); ++i) {
    const auto token = tokens.elements()[i];
    if (token >= 0 && static_cast<std::size_t>(token) < vocabulary) continue;
    raise(errc::invalid_argument,
          concat({"token ", i, " of this rank is ", std::to_string(token), ", and the vocabulary has ", vocabulary,
                  " entries: a token must be at least 0 and less than that"}),
          {.operation = "embedding", .rank = tokens.mesh().rank(), .ranks = tokens.mesh().size(), .site = site});
  }
}

}  // namespace detail

/// Returns rows of a table [vocabulary, features] that is shard<0> along `Axis`, one for each token, with the placement
/// `Output`: invariant (all_reduce), shard<0> (reduce_scatter), or replicated.
template <axis_name Axis, class Output = invariant>
struct vocabulary_parallel_embedding {
  using output_placement = typename detail::output_of_layer<Output>::placement;  ///< placement of the output

  /// Looks up `tokens`, [tokens], of integers, invariant or replicated along `Axis`. Throws `invalid_argument` if one
  /// of them is not a row of the table.
  template <detail::tensor_along<Axis, 1> Tokens, detail::tensor_along<Axis, 2> Table, call_options Options = options<>>
    requires detail::is_pass<detail::embedding_forward_call<Axis, output_placement>, Tokens, Table, Options>
  static auto forward(const Tokens& tokens, const Table& table, const Options& options = {},
                      const std::source_location& site = std::source_location::current()) {
    detail::check_tokens(tokens, table.sizes()[0], site);
    const std::size_t first = table.part().begin[0];
    auto summands = apply<std::remove_const_t<typename Table::element_type>>(
        multilinear<"t,vh->th">(),
        [first](auto ids, auto rows, auto to) {
          for_each_known(ids, first, rows.extent(0), [&](std::size_t t, std::size_t row) {
            for (std::size_t h = 0; h < rows.extent(1); ++h) to(t, h) = rows(row, h);
          });
        },
        detail::entered<Axis, replicated>(tokens, options, site), table);
    return convert<Axis, output_placement>(std::move(summands), options, site);
  }

  /// Computes the gradient of the table. No communication if the output was invariant; all-gathers `gradient` if it was
  /// shard<0>, and all-reduces it if it was replicated. Allocates memory for the sums of elements that are summed in a
  /// wider type, such as bfloat16.
  template <detail::tensor_along<Axis, 1> Tokens, detail::tensor_along<Axis, 2> Table,
            detail::tensor_along<Axis, 2> Gradient, call_options Options = options<>>
    requires detail::is_pass<detail::embedding_backward_call<Axis, output_placement>, Tokens, Table, Gradient, Options>
  static auto backward(const Tokens& tokens, const Table& table, const Gradient& gradient, const Options& options = {},
                       const std::source_location& site = std::source_location::current()) {
    const auto of_sum = detail::before_sum<Axis, output_placement>(borrow(gradient), options, site);
    const std::size_t first = table.part().begin[0];
    return apply<std::remove_const_t<typename Table::element_type>>(
        multilinear<"t,th,vh->vh">(),
        [first](auto ids, auto rows, auto like, auto to) {
          using value_type = typename decltype(to)::value_type;
          const auto add_rows = [&](const auto& total) {
            for_each_known(ids, first, like.extent(0), [&](std::size_t t, std::size_t row) {
              for (std::size_t h = 0; h < to.extent(1); ++h) total(row, h) += rows(t, h);
            });
          };
          if constexpr (std::is_same_v<detail::sum_type_t<value_type>, value_type>) {
            add_rows(to);
          } else {
            std::vector<detail::sum_type_t<value_type>> total(to.size());
            add_rows(array_view<detail::sum_type_t<value_type>, 2>(total.data(), to.sizes()));
            std::transform(total.begin(), total.end(), to.elements().begin(),
                           [](auto each) { return static_cast<value_type>(each); });
          }
        },
        detail::entered<Axis, replicated>(tokens, options, site), of_sum, table);
  }

  // Deleted: the template arguments that the compiler prints explain why.
  template <class... Given,
            auto Why = detail::why_no_pass<detail::embedding_forward_call<Axis, output_placement>, Given...>()>
  static detail::not_understood forward(const Given&...) = delete;
  template <class... Given,
            auto Why = detail::why_no_pass<detail::embedding_backward_call<Axis, output_placement>, Given...>()>
  static detail::not_understood backward(const Given&...) = delete;

 private:
  /// Calls `visit(t, row)` for each token whose row is in [first, first + rows); `row` is relative to `first`.
  template <class Tokens, class Visit>
  static void for_each_known(const Tokens& tokens, std::size_t first, std::size_t rows, const Visit& visit) {
    for (std::size_t t = 0; t < tokens.extent(0); ++t) {
      const auto token = static_cast<std::size_t>(tokens(t));
      if (token >= first && token - first < rows) visit(t, token - first);
    }
  }
};

HOCKET_END_NAMESPACE
