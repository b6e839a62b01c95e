// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The reduction of one bucket of gradients over ranks, which users can replace, for example to compress gradients. The
/// default calls the collective. Another type with the same two members may send less, and add the rest in the next
/// step.
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

/// A started reduction. It has completed when `test()`, which makes progress, returns true, or when `wait()` returns.
/// `wait` throws errors.
template <class T>
concept started_reduction = std::movable<T> && requires(T& started) {
  { started.test() } -> std::convertible_to<bool>;
  started.wait();
};

namespace detail {

/// The type that `Reduction` returns for a bucket of `T`.
template <class Reduction, class Domain, class T, class Options>
using started_by = decltype(std::declval<Reduction&>().all_reduce(
    std::declval<const communicator<Domain>&>(), std::size_t{}, std::declval<std::span<T>>(),
    std::declval<const Options&>(), std::declval<const std::source_location&>()));

/// Adapts what a user-defined reduction returns to a `request`. The returned object's destructor ends it.
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

/// Sums over ranks by collectives, with the caller's options: `with(wire<bfloat16>)` halves the bytes of floats.
struct plain_reduction {
  /// Sums `values` over the ranks of `comm`, in place. Every rank calls it for the same buckets in the same order.
  template <class Domain, class T, class Options>
  request all_reduce(const communicator<Domain>& comm, std::size_t /*bucket*/, std::span<T> values,
                     const Options& options, const std::source_location& site) const {
    return all_reduce_async(comm, in_place(values), std::plus<>{}, options, site);
  }

  /// Sums `values` over the ranks of `comm`, and writes this rank's block of the sum to `own`, which is that block of
  /// `values`. `lengths` are the lengths of all ranks' blocks. The rest of `values` is unspecified afterwards.
  template <class Domain, class T, class Options>
  request reduce_scatter(const communicator<Domain>& comm, std::size_t /*bucket*/, std::span<T> values,
                         std::span<T> own, counts lengths, const Options& options,
                         const std::source_location& site) const {
    return reduce_scatter_v_async(comm, std::span<const T>(values), own, lengths, std::plus<>{}, options, site);
  }
};

/// Like `plain_reduction`, but at stage 0 each rank also sums only its piece of a bucket, and pieces are gathered once
/// per step. So all stages add in one order, and sums of floats have the same bits at all stages, for any number of
/// ranks, if microbatches are reduced at the same times. (An all_reduce may add in another order than a
/// reduce_scatter.) Sends as many bytes as an all_reduce, but those of the gather after the backward pass.
struct piecewise_reduction : plain_reduction {
  static constexpr bool in_pieces = true;  ///< whether a bucket is reduced in pieces at stage 0 too
};

namespace detail {

/// Whether a rank sums only its piece of a bucket even if it stores all of it: true if the reduction has `in_pieces`.
template <class Reduction>
inline constexpr bool reduces_in_pieces = false;
template <class Reduction>
  requires requires { Reduction::in_pieces; }
inline constexpr bool reduces_in_pieces<Reduction> = Reduction::in_pieces;

}  // namespace detail

HOCKET_END_NAMESPACE
