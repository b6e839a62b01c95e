// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// How one bucket of gradients goes over the ranks: the place where compression plugs in. The default is the collective
/// itself; another type with the same two members may send less, and keep what it left out for the next step.
#pragma once

#include <hocket/collective/all_reduce.hpp>
#include <hocket/collective/reduce_scatter_v.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/buffers.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/request.hpp>
#include <hocket/core/strong_types.hpp>

#include <concepts>
#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <utility>

HOCKET_BEGIN_NAMESPACE

/// What a reduction starts: it is over when `test()` says so, which moves it on, or when `wait()` returns. What went
/// wrong is thrown by `wait`.
template <class T>
concept started_reduction = std::movable<T> && requires(T& started) {
  { started.test() } -> std::convertible_to<bool>;
  started.wait();
};

namespace detail {

/// What `Reduction` starts for a bucket of `T`.
template <class Reduction, class Domain, class T, class Options>
using started_by = decltype(std::declval<Reduction&>().all_reduce(
    std::declval<const communicator<Domain>&>(), std::size_t{}, std::declval<std::span<T>>(),
    std::declval<const Options&>(), std::declval<const std::source_location&>()));

template <class Reduction, class Domain, class T, class Options>
struct checked_reduction {
  static constexpr bool is_reduction = requires { typename started_by<Reduction, Domain, T, Options>; };
  static_assert(
      is_reduction,
      "gradients(...): what follows the options is a reduction, with the members all_reduce and reduce_scatter "
      "that plain_reduction has");
  static constexpr bool starts =
      !is_reduction || requires { requires started_reduction<started_by<Reduction, Domain, T, Options>>; };
  static_assert(starts, "gradients(...): what a reduction starts has test() and wait()");
  static constexpr bool value = is_reduction && starts;
};

/// What a reduction of the caller's has started, as what collectives start. It ends with its own destructor.
template <started_reduction Started>
class started_elsewhere final : public pending {
 public:
  explicit started_elsewhere(Started started) : started_(std::move(started)) {}

  bool test() override { return started_.test(); }
  void wait() override { started_.wait(); }
  void wait_undelivered() override {}
  const failure& cause() const override { return no_failure_; }

 private:
  Started started_;
  failure no_failure_;
};

inline request as_request(request started) noexcept { return started; }
template <started_reduction Started>
request as_request(Started started) {
  return request(std::make_unique<started_elsewhere<Started>>(std::move(started)));
}

}  // namespace detail

/// The sum over ranks, by the collectives, with the caller's options: `with(wire<bfloat16>)` halves what travels.
struct plain_reduction {
  /// Adds `values` up over the ranks of `comm`, in place. Every rank calls it for the same buckets in the same order.
  template <class Domain, class T, class Options>
  request all_reduce(const communicator<Domain>& comm, std::size_t /*bucket*/, std::span<T> values,
                     const Options& options, const std::source_location& site) const {
    return all_reduce_async(comm, in_place(values), std::plus<>{}, options, site);
  }

  /// Adds `values` up over the ranks of `comm`, and leaves this rank's block of the sum, `lengths` being those of all
  /// ranks, in `own`, which lies where it lies in `values`. The rest of `values` is left in any state.
  template <class Domain, class T, class Options>
  request reduce_scatter(const communicator<Domain>& comm, std::size_t /*bucket*/, std::span<T> values,
                         std::span<T> own, counts lengths, const Options& options,
                         const std::source_location& site) const {
    return reduce_scatter_v_async(comm, std::span<const T>(values), own, lengths, std::plus<>{}, options, site);
  }
};

/// The same, and at stage 0 too each rank adds its piece of a bucket; then pieces are gathered, once a step. So all stages
/// add in one order: with floats too they have the same bits, at any number of ranks, where their microbatches are
/// reduced at the same times. (An all_reduce may add in another order than a reduce_scatter.) As many bytes as an
/// all_reduce has, but those of the gather leave after the backward pass.
struct piecewise_reduction : plain_reduction {
  static constexpr bool in_pieces = true;
};

namespace detail {

/// Whether a rank is to have its piece of the sum of a bucket, and no more, even if it keeps all: where the reduction
/// says so.
template <class Reduction>
inline constexpr bool reduces_in_pieces = false;
template <class Reduction>
  requires requires { Reduction::in_pieces; }
inline constexpr bool reduces_in_pieces<Reduction> = Reduction::in_pieces;

}  // namespace detail

HOCKET_END_NAMESPACE
