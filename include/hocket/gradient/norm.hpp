// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The norm of a step's whole gradient, and whether all of it is finite: one pass over this rank's part of the
/// gradient, and one small all_reduce. If ranks store different parts of the gradient or slices of the model, local
/// norms are wrong, and a step that only some ranks skip ruins the model. So both results come from the same exact sum,
/// and are equal on all ranks to the last bit.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/host/option_diagnostics.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/call_end.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/explanation.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/gradient/parameter_layout.hpp>
#include <hocket/operation/exact_sum.hpp>
#include <hocket/plan/plan.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// Norm of a sum of gradients, before any division.
struct gradient_norm {
  double value = 0;    ///< infinite or not a number if the gradient is not finite
  bool finite = true;  ///< whether the norm and every element on every rank, copies included, are finite

  /// Returns the factor for `optimizer::step`: 1 / `divisor`, or less, so that the norm of the product is at most
  /// `most`.
  /// @param divisor the count of the summed samples or tokens, times the loss scale of the step
  /// Raises `invalid_argument` if `most` is negative or not a number.
  constexpr double step_factor(double divisor, double most = std::numeric_limits<double>::infinity()) const;
};

/// Returns the factor that reduces a gradient of this norm to a norm of at most `most`: 1 if the norm is at most `most`
/// or not a number. Raises `invalid_argument` if `most` is negative or not a number.
constexpr double clip_factor(double norm, double most) {
  if (detail::has_nan_bits(most) || most < 0) {
    raise(errc::invalid_argument, "the norm of a gradient can't be clipped to " + std::to_string(most) +
                                      ": the limit must be 0 or more, or infinite");
  }
  return norm > most ? most / norm : 1.0;
}

constexpr double gradient_norm::step_factor(double divisor, double most) const {
  return clip_factor(value / divisor, most) / divisor;
}

namespace detail {

/// Returns an element of a gradient as the optimizer uses it; rounds exact sums.
template <class T>
constexpr auto rounded_sum(const T& sum) noexcept {
  if constexpr (requires { sum.value(); }) {
    return sum.value();
  } else {
    return sum;
  }
}

/// Returns the sum of squares of at most one block, in an order that does not depend on the position of the block.
/// @param scale a power of two by which elements are multiplied before they are squared
template <class T>
double squares_of(std::span<const T> block, double scale = 1) noexcept {
  constexpr std::size_t lanes = 4;
  double sums[lanes] = {};
  for (std::size_t i = 0; i < block.size(); ++i) {
    const auto each = scale * static_cast<double>(rounded_sum(block[i]));
    sums[i % lanes] += each * each;
  }
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/// A sum of squares of elements of any magnitude, exact over blocks. If the squares of a block would overflow or
/// underflow a double, its elements are scaled and added to another sum.
class sum_of_squares {
 public:
  template <class T>
  void add(std::span<const T> block) noexcept {
    const double squares = squares_of(block);
    if (squares < 0x1p-960) {
      tiny().add(squares_of(block, upwards));
    } else if (squares < 0x1p960) {
      usual().add(squares);
    } else {
      huge().add(squares_of(block, downwards));  // also non-finite elements
    }
  }

  /// Adds only the non-finite elements of a copy that counts on another rank. Copies may differ in these.
  template <class T>
  void add_if_not_finite(std::span<const T> copy) noexcept {
    for (const T& each : copy) {
      const auto value = static_cast<double>(rounded_sum(each));
      if (!is_finite(value)) usual().add(value);
    }
  }

  void add_nan() noexcept { usual().add(std::numeric_limits<double>::quiet_NaN()); }

  double root() const noexcept {
    const double tiny = sums_[0].value(), usual = sums_[1].value(), huge = sums_[2].value();
    const double all = tiny + usual + huge;
    if (!is_finite(all)) return all;
    if (huge != 0) return std::sqrt(huge + usual * downwards * downwards) * upwards;
    if (usual != 0) return std::sqrt(usual + tiny * downwards * downwards);
    return std::sqrt(tiny) * downwards;
  }

  /// The sums that must be reduced over ranks.
  std::span<exact_sum<double>> parts() noexcept { return sums_; }

 private:
  static constexpr double upwards = 0x1p600, downwards = 0x1p-600;

  exact_sum<double>& tiny() noexcept { return sums_[0]; }
  exact_sum<double>& usual() noexcept { return sums_[1]; }
  exact_sum<double>& huge() noexcept { return sums_[2]; }

  std::array<exact_sum<double>, 3> sums_;
};

/// Adds the squares of `values`, which are the range `own` of bucket `b`. Each block of a layout is on one rank, and
/// sums of blocks are added exactly, so the result does not depend on the number of ranks.
template <class T>
void add_squares(sum_of_squares& sum, const parameter_layout& layout, std::size_t b, const element_range& own,
                 std::span<const T> values) {
  layout.visit_parts(b, own, [&](std::size_t i, const element_range& part) {
    for (std::size_t at = part.first; at < part.end(); at += layout_block_elements) {
      const auto block = values.subspan(at - own.first, std::min(layout_block_elements, part.end() - at));
      if (layout[i].counts_in_norm) {
        sum.add(block);
      } else {
        sum.add_if_not_finite(block);
      }
    }
  });
}

/// Returns the sum of squares of this rank's part of the gradient.
template <class Gradients>
sum_of_squares squares_here(Gradients& gradients) {
  sum_of_squares sum;
  if (gradients.abandoned()) sum.add_nan();
  for (std::size_t b = 0; b < gradients.layout().buckets(); ++b) {
    gradients.wait(b);
    add_squares<typename Gradients::value_type>(sum, gradients.layout(), b, gradients.own_range(b),
                                                gradients.result(b));
  }
  return sum;
}

/// An accumulator with buckets of gradients. Tensors have another `norm`.
template <class T>
concept has_buckets = !std::is_const_v<T> && requires(T& gradients) {
  typename T::sharding;
  gradients.layout();
  gradients.check_finished("");
  gradients.bounds();
  gradients.own_range(std::size_t{});
};

/// The options of the all_reduce of the sums of squares.
using gradient_norm_options = reduction_options<plan::collective_kind::all_reduce, std::plus<>, exact_sum<double>>;

/// The arguments of `norm` after the gradients.
template <class... Given>
struct gradient_norm_call {
  static consteval sentence explain() {
    if constexpr (ends_call<Given...>) {
      return explain_options_at_end<gradient_norm_options, Given...>();
    } else {
      return "the norm of gradients takes the gradients, the communicator of the model if its ranks hold other "
             "parameters, and options, as in norm(gradients, model, with(timeout(5s)))";
    }
  }
};
template <class Domain, class... Rest>
struct gradient_norm_call<communicator<Domain>, Rest...> : gradient_norm_call<Rest...> {};

template <class... Given>
  requires(static_cast<bool>(gradient_norm_call<Given...>::explain()))
constexpr auto why_no_gradient_norm() {
  return make_explanation([] { return gradient_norm_call<Given...>::explain(); });
}

template <class Options>
concept options_of_gradient_norm = call_options<Options> && accepted_with<Options, gradient_norm_options, void>;

/// Raises `invalid_argument` if more than `ranks` ranks of the model hold parts of a parameter, as given by the type of
/// its tensor: the other ranks would compute another norm and update their copies by another step.
HOCKET_DECL void check_model_ranks(const parameter_layout& layout, int ranks, const error_context& context);

/// Raises `invalid_argument` for ranks of the model over which the gradient was summed.
[[noreturn]] HOCKET_DETAIL_RARE HOCKET_DECL void refuse_counting_twice(const error_context& context);

/// Computes the norm over the ranks that store parts of the gradient and those of `models`: no communicator or one.
template <class Gradients, class Options, class... Models>
gradient_norm norm_over(Gradients& gradients, const Options& options, const std::source_location& site,
                        const Models&... models) {
  gradients.check_finished("norm");
  const error_context context{.operation = "norm", .rank = gradients.rank(), .ranks = gradients.ranks(), .site = site};
  if ((gradients.adds_over_some_of(models) || ...)) refuse_counting_twice(context);
  check_model_ranks(gradients.layout(), (models.size() * ... * 1), context);
  sum_of_squares squares = squares_here(gradients);
  const auto add_over = [&](const auto& comm) {
    if constexpr (std::is_same_v<Options, hocket::options<>>) {
      all_reduce(comm, in_place(squares.parts()), std::plus<>{}, gradients.bounds(), site);
    } else {
      all_reduce(comm, in_place(squares.parts()), std::plus<>{}, options, site);
    }
  };
  if constexpr (Gradients::sharding::shards_states) add_over(gradients.shards());
  (add_over(models), ...);
  const double value = squares.root();
  return {value, is_finite(value)};
}

}  // namespace detail

/// Returns the norm of the summed gradient of `gradients`, after `finish`. Collective over its ranks.
///
/// Elements of parameters with `counts_in_norm` count once; double precision, for elements of any magnitude. The norm
/// is that of the sum: divide it by the count and the loss scale, or use `gradient_norm::step_factor`. Not a number if
/// the step was abandoned.
/// Raises `invalid_argument` if a parameter made by `parameter_of` has slices or copies on more ranks than these.
/// @param options options of the small all_reduce; by default, the timeout and the stop token of `gradients`
template <detail::has_buckets Gradients, detail::options_of_gradient_norm Options = options<>>
gradient_norm norm(Gradients& gradients, const Options& options = {},
                   const std::source_location& site = std::source_location::current()) {
  return detail::norm_over(gradients, options, site);
}

/// The same if the ranks of `model` hold other parameters or other slices: pipeline stages or tensor-parallel ranks.
/// Collective over both groups; every rank of `model` must call it.
template <detail::has_buckets Gradients, class Domain, detail::options_of_gradient_norm Options = options<>>
gradient_norm norm(Gradients& gradients, const communicator<Domain>& model, const Options& options = {},
                   const std::source_location& site = std::source_location::current()) {
  return detail::norm_over(gradients, options, site, model);
}

/// Deleted: the template argument `Why` is the reason.
template <detail::has_buckets Gradients, class... Given, auto Why = detail::why_no_gradient_norm<Given...>()>
detail::not_understood norm(Gradients&, const Given&...) = delete;

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/gradient/impl/norm.ipp>
#endif
