// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Conversion of a tensor from one placement to another along one axis of the mesh, with the communication that it
/// needs. The backward pass of a conversion is the reverse conversion between the gradients' placements, so that a
/// program can derive the backward pass from the types:
///
/// | from           | to             | forward                      | backward                     |
/// |----------------|----------------|------------------------------|------------------------------|
/// | `invariant`    | `replicated`   | nothing                      | all_reduce                   |
/// | `invariant`    | `shard<d>`     | takes its slice              | all_gather                   |
/// | `replicated`   | `shard<d>`     | takes its slice              | puts it among zeros          |
/// | `replicated`   | `varying`      | nothing                      | nothing                      |
/// | `replicated`   | `partial<sum>` | one rank keeps it, zeros     | one rank keeps it, zeros     |
/// | `shard<d>`     | `replicated`   | all_gather                   | reduce_scatter               |
/// | `shard<d>`     | `invariant`    | all_gather                   | takes its slice              |
/// | `shard<d>`     | `shard<e>`     | all_to_all                   | all_to_all                   |
/// | `shard<d>`     | `partial<sum>` | puts it among zeros          | takes its slice              |
/// | `varying`      | `partial<sum>` | nothing                      | nothing                      |
/// | `partial<Op>`  | `replicated`   | all_reduce                   | all_reduce                   |
/// | `partial<Op>`  | `invariant`    | all_reduce                   | nothing                      |
/// | `partial<Op>`  | `shard<d>`     | reduce_scatter               | all_gather                   |
///
/// Of the partial placements, only `partial<sum>` has a backward pass. All other pairs do not compile, and the error
/// states the reason. For conversions along several axes, by the cheapest path: shard/redistribute.hpp.
#pragma once

#include <hocket/collective/all_gather.hpp>
#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/reduce_scatter.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/float_bits.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/mesh/axis.hpp>
#include <hocket/shard/agreed_extents.hpp>
#include <hocket/shard/boxes.hpp>
#include <hocket/shard/conversion_diagnostics.hpp>
#include <hocket/shard/conversion_rules.hpp>
#include <hocket/shard/moves.hpp>
#include <hocket/shard/placement.hpp>
#include <hocket/shard/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>
#include <source_location>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the tensor if it was moved in and is writable, else a copy.
template <class Tensor>
decltype(auto) owned(Tensor&& tensor) {
  if constexpr (std::is_same_v<Tensor, writable_t<std::remove_cvref_t<Tensor>>>) {
    static_cast<void>(checked_mesh(tensor.mesh()));
    return std::move(tensor);
  } else {
    return copy(tensor);
  }
}

/// One conversion of one tensor, and its arguments. Functions are inlined, because most arguments are known at compile
/// time, so that only the collective remains.
template <class To, class From, class Options>
class converting {
  using value_type = std::remove_const_t<typename From::element_type>;
  static constexpr std::size_t rank = From::rank;
  using from_block = block<const value_type, rank>;

 public:
  HOCKET_ALWAYS_INLINE converting(const From& from, int axis, const Options& options, const std::source_location& site)
      : from_(from), axis_(axis), options_(options), site_(site) {}

  HOCKET_ALWAYS_INLINE To gather() const {
    To to = made();
    if (are_slices_contiguous<From>(to)) {
      all_gather(comm(), from_.elements(), to.elements(), options_, site_);
    } else {
      gather_by_parts(to);
    }
    return to;
  }

  template <class Op>
  HOCKET_ALWAYS_INLINE To reduce_to_slices(const Op& op) const {
    To to = made();
    if (are_slices_contiguous<To>(from_)) {
      reduce_scatter(comm(), from_.elements(), to.elements(), op, options_, site_);
    } else {
      reduce_by_parts(to, op);
    }
    return to;
  }

  To exchange() const {
    To to = made();
    exchange_parts<value_type, rank>(
        comm(), {to.elements().data(), to.part()}, held(), parts<From>(), parts<To>(), [](int) { return true; },
        options_, site_);
    return to;
  }

  To slice() const {
    To to = made();
    copy_region<value_type, rank>({to.elements().data(), to.part()}, held(), to.part());
    return to;
  }

  To pad_with_zeros() const {
    To to = To::of_sizes(mesh(), from_.sizes());
    to.copy_count(from_);
    copy_region<value_type, rank>({to.elements().data(), to.part()}, held(), from_.part());
    return to;
  }

 private:
  const auto& mesh() const { return from_.mesh(); }
  const auto& comm() const { return mesh().along(along()); }
  axis_set along() const { return 1U << axis_; }
  from_block held() const { return {from_.elements().data(), from_.part()}; }

  template <class Sliced>
  auto parts() const {
    return parts_along<rank>(mesh(), along(), from_.sizes(), Sliced::placements_type::values);
  }

  /// Returns whether the slices of type `Sliced` have equal sizes and follow each other in `whole`.
  template <class Sliced, class Whole>
  HOCKET_ALWAYS_INLINE bool are_slices_contiguous(const Whole& whole) const {
    const auto position = static_cast<std::size_t>(axis_);
    const int known = From::axes::all[position].extent;
    const int ranks = known != run_time_extent ? known : mesh().extents()[position];
    return equal_and_in_order<rank>(whole.local().sizes(),
                                    static_cast<std::size_t>(Sliced::placements_type::values[position].dimension),
                                    static_cast<std::size_t>(ranks));
  }

  HOCKET_NO_INLINE void gather_by_parts(To& to) const {
    gather_parts<value_type, rank>(comm(), {to.elements().data(), to.part()}, from_.elements(), parts<From>(), options_,
                                   site_);
  }

  template <class Op>
  HOCKET_NO_INLINE void reduce_by_parts(To& to, const Op& op) const {
    reduce_parts<value_type, rank>(comm(), to.elements(), held(), parts<To>(), op, options_, site_);
  }

  HOCKET_ALWAYS_INLINE To made() const {
    To to = To::unwritten(mesh(), from_.sizes());
    to.copy_count(from_);
    return to;
  }

  const From& from_;
  const int axis_;
  const Options& options_;
  const std::source_location& site_;
};

/// Returns the options for the all_reduce of the counts of means: the caller's, without wire type and algorithm, which
/// are meant for the elements.
template <class Options>
constexpr auto options_of_counts(const Options& all) {
  const auto kept = [&]<class Kind>(std::type_identity<Kind>) {
    if constexpr (!Options::template has<Kind>) {
      return std::tuple<>();
    } else if constexpr (Options::template is_hint<Kind>) {
      return std::tuple(hint(all.template get<Kind>(0)));
    } else {
      return std::tuple(all.template get<Kind>(0));
    }
  };
  return std::apply(
      [](const auto&... properties) { return with(properties...); },
      std::tuple_cat(kept(std::type_identity<kind::timeout>()), kept(std::type_identity<kind::stop>()),
                     kept(std::type_identity<kind::integrity>()), kept(std::type_identity<kind::observer>()),
                     kept(std::type_identity<kind::agreement>())));
}

/// Throws because a count is not set. All ranks throw, because a sum with a NaN is NaN.
template <class Comm>
[[noreturn]] HOCKET_COLD void refuse_uncounted(const Comm& comm, const std::source_location& site) {
  raise(errc::invalid_argument,
        "on at least one rank, the number of elements that its partial means stand for is not set: call set_count on "
        "every rank, or make the means with mean_over",
        {.operation = "mean", .rank = comm.rank(), .ranks = comm.size(), .site = site});
}

/// Weights this rank's means, each of `own` elements, so that their sum over the ranks is the mean of all elements.
/// Returns the number of all elements.
template <class T, class Comm, class Options>
double weigh_means(std::span<T> means, double own, const Comm& comm, const Options& options,
                   const std::source_location& site) {
  double total = 0;
  all_reduce(comm, std::span(&own, 1), std::span(&total, 1), std::plus<>{}, options_of_counts(options), site);
  if (!is_finite(total)) refuse_uncounted(comm, site);
  const double weight = total > 0 ? own / total : std::numeric_limits<double>::quiet_NaN();
  for (T& each : means) {
    // A mean of no elements may have any value, also NaN.
    each = own == 0 && total > 0 ? T(0) : static_cast<T>(static_cast<double>(each) * weight);
  }
  return total;
}

}  // namespace detail

/// The conversion from `From` to `To` along the axis `Axis`, as a function object.
template <axis_name Axis, placement_type From, placement_type To>
struct conversion {
  static constexpr detail::conversion_kind kind = detail::kind_of_conversion<From, To>;  ///< the kind of conversion
  static constexpr bool allowed = kind < detail::conversion_kind::already;               ///< false: does not compile

  /// Converts `tensor`, which is placed as `From` along `Axis`, to `To`. Placements along other axes do not change.
  ///
  /// Collective over the ranks along `Axis`, by at most one collective (two for `partial<mean>`: its counts are reduced
  /// first, always as double); see the table above. A tensor that is moved in passes its storage to the result if the
  /// parts are the same. Options, order, progress and errors as for the collective.
  template <tensor_type Tensor, call_options Options = options<>>
    requires detail::is_converted<Axis, From, To, Tensor, Options>
  auto operator()(Tensor&& tensor, const Options& options = {},
                  const std::source_location& site = std::source_location::current()) const {
    using from_type = std::remove_cvref_t<Tensor>;
    constexpr int position = detail::position_of<typename from_type::axes, Axis>();
    using placed = typename from_type::placements_type;
    using made = std::conditional_t<From::value.kind == placement_kind::undetermined, From, To>;
    using to_placed = typename detail::with_placement<position, made, placed>::type;
    using to_type = detail::placed_as<from_type, to_placed>;
    using step = detail::conversion_kind;
    constexpr bool moved_in = !std::is_lvalue_reference_v<Tensor> && !std::is_const_v<Tensor>;
    constexpr bool movable = moved_in && !std::is_const_v<typename from_type::element_type>;
    if constexpr (kind == step::nothing && moved_in) {
      using element = typename from_type::element_type;
      static_cast<void>(detail::checked_mesh(tensor.mesh()));
      return std::move(tensor)
          .template reinterpret<
              sharded_tensor<element, typename from_type::extents_type, typename from_type::mesh_type, to_placed>>();
    } else if constexpr (kind == step::nothing || kind == step::keep_on_first || kind == step::reduce_to_all) {
      if constexpr (movable) {
        return in_place<to_type>(tensor, 1U << position, options, site);
      } else {
        auto copied = copy(tensor);
        return in_place<to_type>(copied, 1U << position, options, site);
      }
    } else if constexpr (kind == step::reduce_to_slices && std::is_same_v<From, partial<mean>>) {
      detail::writable_t<from_type> weighed = detail::owned(std::forward<Tensor>(tensor));
      const auto& all_options = detail::with_extents(options, weighed);
      weighed.set_count(detail::weigh_means(weighed.elements(), weighed.count(), weighed.mesh().along(1U << position),
                                            all_options, site));
      return detail::converting<to_type, detail::writable_t<from_type>, std::remove_cvref_t<decltype(all_options)>>(
                 weighed, position, all_options, site)
          .reduce_to_slices(std::plus<>{});
    } else {
      const auto& all_options = detail::with_extents(options, tensor);
      const detail::converting<to_type, from_type, std::remove_cvref_t<decltype(all_options)>> work(tensor, position,
                                                                                                    all_options, site);
      if constexpr (kind == step::gather_to_all) {
        return work.gather();
      } else if constexpr (kind == step::exchange) {
        return work.exchange();
      } else if constexpr (kind == step::reduce_to_slices) {
        return work.reduce_to_slices(typename detail::reduction_of<From>::type{});
      } else if constexpr (kind == step::pad_with_zeros) {
        return work.pad_with_zeros();
      } else {
        return work.slice();
      }
    }
  }

  /// Deleted: the template argument `Why` is the reason.
  template <class Given, class... Rest, auto Why = detail::why_not_converted<Axis, From, To, Given, Rest...>()>
  detail::not_understood operator()(Given&&, const Rest&...) const = delete;

 private:
  /// Converts a tensor whose parts remain the same: changes the elements of `tensor`, and then moves it to the result.
  template <class Result, class Tensor, class Options>
  HOCKET_ALWAYS_INLINE static Result in_place(Tensor& tensor, detail::axis_set along, const Options& options,
                                              const std::source_location& site) {
    const auto& comm = detail::checked_mesh(tensor.mesh()).along(along);
    const auto& all_options = detail::with_extents(options, tensor);
    if constexpr (std::is_same_v<From, partial<mean>>) {
      tensor.set_count(detail::weigh_means(tensor.elements(), tensor.count(), comm, all_options, site));
    }
    if constexpr (kind == detail::conversion_kind::reduce_to_all) {
      all_reduce(comm, hocket::in_place(tensor.elements()), typename detail::reduction_of<From>::type{}, all_options,
                 site);
    } else if constexpr (kind == detail::conversion_kind::keep_on_first) {
      using value_type = typename Tensor::element_type;
      if (comm.rank() != 0) std::fill(tensor.elements().begin(), tensor.elements().end(), value_type{});
    }
    return std::move(tensor).template reinterpret<Result>();
  }
};

/// The conversion of gradients: from the gradient of `Conversion`'s result to the gradient of its argument.
template <class Conversion>
struct backward_of;
template <axis_name Axis, class From, class To>
struct backward_of<conversion<Axis, From, To>> {
  using type = conversion<Axis, gradient_placement_t<To>, gradient_placement_t<From>>;
};
/// The conversion of gradients in the backward pass of `Conversion`.
template <class Conversion>
using backward_t = typename backward_of<Conversion>::type;

/// Converts `tensor` to `To` along the axis `Axis`: `convert<"tp", invariant>(std::move(x))`. See `conversion`.
template <axis_name Axis, placement_type To, tensor_type Tensor, call_options Options = options<>>
  requires detail::is_converted<Axis, void, To, Tensor, Options>
auto convert(Tensor&& tensor, const Options& options = {},
             const std::source_location& site = std::source_location::current()) {
  using from = typename std::remove_cvref_t<Tensor>::template placement_on<Axis>;
  return conversion<Axis, from, To>()(std::forward<Tensor>(tensor), options, site);
}

// Deleted: the compiler prints the reason as a template argument.
template <axis_name Axis, placement_type To, class Given, class... Rest,
          auto Why = detail::why_not_converted<Axis, void, To, Given, Rest...>()>
detail::not_understood convert(Given&&, const Rest&...) = delete;
template <axis_name Axis, class... Named, auto Why = detail::why_no_placement<Named...>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;
template <class First, axis_name Second, auto Why = detail::why_not_placement_first<First>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;
template <class... Given, auto Why = detail::why_not_along_these<Given...>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;
template <axis_name Axis, class First, axis_name Second, class Next = void, axis_name Third = Second, class... Rest,
          auto Why = detail::why_not_along_these<First, Next, Rest...>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;
template <auto First, class... Named, auto Why = detail::why_not_along_a_number<std::remove_const_t<decltype(First)>>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;
template <axis_name Axis, template <auto...> class To, auto Why = detail::why_no_dimension<To>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;
template <axis_name Axis, template <class...> class To, auto Why = detail::why_no_reduction<To>()>
detail::not_understood convert(const detail::any_argument&, const auto&...) = delete;

HOCKET_END_NAMESPACE
