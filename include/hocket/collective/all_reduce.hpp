// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Combines a vector over all ranks and gives the result to all of them.
#pragma once

#include <hocket/collective/detail/generate_call.hpp>
#include <hocket/collective/detail/reducing_call.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/push.hpp>
#include <hocket/collective/host/reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/options.hpp>
#include <hocket/plan/plan.hpp>

#include <cstdint>
#include <source_location>
#include <span>

HOCKET_BEGIN_NAMESPACE

namespace detail {

/// Small vectors take the direct path of host/push.hpp, which does not interpret a plan.
template <>
struct host_reduction<plan::collective_kind::all_reduce, blocking> {
  template <class Domain, class T, class Op, class Options>
  static outcome run(const communicator<Domain>& comm, std::span<const T> in, std::span<T> out, const Op& op,
                     int /*root*/, const Options& options, const std::source_location& site) {
    constexpr auto all_reduce_kind = plan::collective_kind::all_reduce;
    constexpr bool can_be_pushed = !compares_first && !reduction<Op, T>::prepares &&
                                   !Options::template has<kind::algorithm> && !Options::template has<kind::integrity> &&
                                   sizeof(T) <= push_line::capacity;
    if constexpr (can_be_pushed) {
      const call_settings& settings = settings_of(options);
      if (!communicator_access::is_moved_from(comm)) [[likely]] {
        auto& state = communicator_access::state(comm);
        if (can_push(state, in, out, settings)) {
          constexpr std::uint32_t kind_of_call =
              call_signature(reduction_signature<all_reduce_kind, Op, T>, plan::push_all_reduce::name(), 0);
          const std::uint32_t signature = with_agreement(call_signature(kind_of_call, in.size()), settings.agreement);
          return push_all_reduce(state, in, out, op, signature, settings, site);
        }
      }
    }
    return run_reduction<all_reduce_kind, blocking>(comm, in, out, op, 0, options, site);
  }
};

}  // namespace detail

/// Combines `in` element-wise over all ranks of `comm` with `op`, and writes the result to `out` on every rank.
///
/// **Arguments.** `(comm, in, out, op, with(...), code)`, or `in_place(buffer)` instead of `in, out`.
///   `op` and what follows are optional; `op` is then `std::plus<>{}`.
///   `code` is a `std::error_code` that receives the error, which is thrown otherwise.
/// Collective: every rank must pass an equal `in.size()`, element type, `op` and algorithm.
/// **Buffers.** `in` and `out` have equal size in elements; they must not overlap (pass `in_place(buffer)` to use one
///   for both). Both may be reused when the call returns.
/// **Operation.** Any associative function object `T op(T, T)`, or {prepare, combine, finish}: see
///   operation/traits.hpp. `op` counts as commutative only if it declares so. It must be trivially copyable, and equal
///   on all ranks except for values that only `prepare` uses. It must not throw: if it does, the call fails with
///   `invalid_argument`, or `out_of_memory` for `std::bad_alloc`, and the communicator is revoked.
/// **Cost.** p ranks, n bytes: push and one_shot 1 step, two_shot 2 steps of (p-1)/p n; ring 2(p-1) messages of n/p;
///   recursive_doubling log2 p messages of n. `explain` reports which algorithm is chosen and why.
/// **Order.** Fixed by (ranks, size, algorithm): the same bits on all ranks, and from run to run. With
///   `require(fixed_tree)` the same bits by any algorithm, with `require(rank_count_invariant)` for any number of ranks.
/// **Progress.** Blocks, and drives this communicator's other operations meanwhile. **Threads.** One per communicator.
/// **Errors.** Throws `error`: `invalid_argument` before anything is sent; `timeout`, `aborted`, `mismatch`,
///   `peer_lost` or `out_of_memory` later; the communicator is then revoked on all ranks: see docs/when-it-fails.md.
inline constexpr detail::call<detail::reducing<plan::collective_kind::all_reduce>> all_reduce{};

/// Like `all_reduce`, but returns immediately. The buffers belong to the operation until the request has completed.
/// Throws only for errors of the call itself, such as invalid arguments.
inline constexpr detail::call_async<detail::reducing<plan::collective_kind::all_reduce>> all_reduce_async{};

HOCKET_END_NAMESPACE
