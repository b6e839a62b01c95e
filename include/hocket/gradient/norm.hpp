// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The norm of a step's whole gradient, and whether all of it is finite: one pass over what this rank has of it, one
/// small all_reduce. Where ranks keep different parts, or hold slices of the model, a norm taken by each on its own is
/// wrong, and a step that one skips and another takes ruins the model; so both come from the same exact sum, equal on
/// all ranks to the last bit.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/operation/exact_sum.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <source_location>
#include <span>

HOCKET_BEGIN_NAMESPACE

/// Of a sum of gradients, before it is divided by anything.
struct gradient_norm {
  double value = 0;    ///< infinite or not a number if the gradient is not finite
  bool finite = true;  ///< whether it is, and with it every element on every rank, copies included
};

namespace detail {

/// An element of a gradient as it goes into the optimizer: sums that are kept exactly are rounded here.
template <class T>
constexpr auto rounded_sum(const T& sum) noexcept {
  if constexpr (requires { sum.value(); }) {
    return sum.value();
  } else {
    return sum;
  }
}

/// The squares of at most a block's elements, in an order that does not depend on where the block lies.
template <class T>
double squares_of(std::span<const T> block) noexcept {
  constexpr std::size_t lanes = 4;
  double sums[lanes] = {};
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto each = static_cast<double>(rounded_sum(block[i]));
    sums[i % lanes] += each * each;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// What a copy, which counts elsewhere, adds: nothing, unless it is not finite. Copies may differ in that.
template <class T>
void add_if_not_finite(std::span<const T> copy, exact_sum<double>& sum) noexcept {
  for (const T& each : copy) {
    const auto value = static_cast<double>(rounded_sum(each));
    if (!std::isfinite(value)) sum.add(value);
  }
}

/// Of what this rank has: blocks of a layout are whole on one rank, so their sums, added exactly, do not depend on how
/// many ranks there are.
template <class Gradients>
exact_sum<double> squares_here(Gradients& gradients) {
  using T = typename Gradients::value_type;
  const parameter_layout& layout = gradients.layout();
  exact_sum<double> sum;
  for (std::size_t b = 0; b < layout.buckets(); ++b) {
    const element_range own = gradients.own_range(b);
    const std::span<const T> values = gradients.result(b);
    for (const std::size_t i : layout.members(b)) {
      const std::size_t end = std::min(layout.of(i).end(), own.end());
      for (std::size_t at = std::max(layout.of(i).first, own.first); at < end; at += parameter_layout::block) {
        const auto block = values.subspan(at - own.first, std::min(parameter_layout::block, end - at));
        if (layout[i].counted) {
          sum.add(squares_of(block));
        } else {
          add_if_not_finite(block, sum);
        }
      }
    }
  }
  return sum;
}

template <class Wire>
void add_over(const communicator<Wire>& comm, exact_sum<double>& sum, const std::source_location& site) {
  all_reduce(comm, in_place(std::span(&sum, 1)), std::plus<>{}, options<>{}, site);
}

/// Whether there are buckets of gradients in it. Tensors have a `norm` of their own.
template <class T>
concept has_buckets = requires(T& gradients) {
  typename T::sharding;
  gradients.layout();
};

inline gradient_norm norm_of(const exact_sum<double>& squares) noexcept {
  const double value = std::sqrt(squares.value());
  return {value, std::isfinite(value)};
}

}  // namespace detail

/// The norm of the gradient that `gradients` has the sum of, after `finish`. Collective over its ranks.
///
/// Elements of parameters with `counted` count once; double precision. Divide by what the gradient is to be divided by:
/// the count, and the loss scale.
template <detail::has_buckets Gradients>
gradient_norm norm(Gradients& gradients, const std::source_location& site = std::source_location::current()) {
  gradients.check_finished("norm");
  exact_sum<double> squares = detail::squares_here(gradients);
  if constexpr (Gradients::sharding::shards_states) detail::add_over(gradients.shards(), squares, site);
  return detail::norm_of(squares);
}

/// The same where ranks of `model` hold other parameters, or other slices of them: pipeline stages, tensor-parallel
/// ranks. Collective over both; every rank of `model` must call it.
template <detail::has_buckets Gradients, class Wire>
gradient_norm norm(Gradients& gradients, const communicator<Wire>& model,
                   const std::source_location& site = std::source_location::current()) {
  gradients.check_finished("norm");
  exact_sum<double> squares = detail::squares_here(gradients);
  if constexpr (Gradients::sharding::shards_states) detail::add_over(gradients.shards(), squares, site);
  detail::add_over(model, squares, site);
  return detail::norm_of(squares);
}

/// What a gradient of this norm is to be multiplied with so that its norm is at most `most`; 1 if it is.
constexpr double clip_factor(double norm, double most) noexcept { return norm > most ? most / norm : 1.0; }

HOCKET_END_NAMESPACE
