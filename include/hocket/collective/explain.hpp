// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reports which algorithm a call would choose, and why: the cost model's table, row by row.
#pragma once

#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/reduce.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/last_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/operation/traits.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <functional>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns which lengths a collective takes: equal blocks, counts known to all ranks, or counts known to pairs.
template <class Collective>
constexpr block_lengths lengths_of() noexcept {
  if constexpr (requires { Collective::block_lengths; }) {
    return Collective::block_lengths;
  } else {
    return block_lengths::equal;
  }
}

/// Returns the request of a call of `Collective` with these options, without the lengths.
template <class T, class Collective, class Op, class Options>
call_request request_of(const Op& op, const Options& options) {
  call_request asked{
      .what = {Collective::collective, 0}, .element_size = sizeof(T), .lengths = lengths_of<Collective>()};
  asked.checksummed = Options::template has<kind::integrity>;
  if constexpr (plan::collective{Collective::collective, 0}.reduces()) {
    static_assert(Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::wire, kind::observer,
                                         kind::exactness, kind::integrity>,
                  "explain(...): a reduction can't use one of these properties");
    using effective = std::remove_const_t<decltype(effective_operation<Op, T>(op, options))>;
    asked.element_size = kernel::element_kernel_of<effective, T>.size;
    asked.order = weakest_order<effective, T>();
  } else {
    static_assert(Options::template only<kind::algorithm, kind::timeout, kind::stop, kind::observer, kind::integrity>,
                  "explain(...): a call that combines nothing can't use one of these properties");
  }
  return asked;
}

/// Returns the table for a request on the communicator's transport.
template <class Domain>
std::string explain_request(const communicator<Domain>& comm, const call_request& asked, const call_settings& settings);

template <plan::collective_kind Kind, class Domain, class Options>
std::string explain_call(const communicator<Domain>& comm, const call_request& asked, const Options& options) {
  const auto named = named_plan<Kind>(options, 0);
  return explain_request(comm, asked, settings_of(options, named));
}

}  // namespace detail

/// Returns the table from which the collective chooses for `count` elements of T per rank's `out` (per block if the
/// result has blocks): `explain<float>(comm, all_reduce, 1 << 20)`. Options are taken into account:
/// `explain<float>(comm, all_reduce, 1 << 20, std::plus<>{}, with(wire<bfloat16>))`. Local; the result is the same on
/// all ranks.
template <class T, class Domain, class Collective, class Op = std::plus<>, call_options Options = options<>>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::equal && !call_options<Op>)
std::string explain(const communicator<Domain>& comm, const Collective&, std::size_t count, const Op& op = {},
                    const Options& options = {}) {
  detail::call_request asked = detail::request_of<T, Collective>(op, options);
  asked.block_elements = count;
  return detail::explain_call<Collective::collective>(comm, asked, options);
}

/// Like the above, for all_gather_v and reduce_scatter_v with these counts: `explain<float>(comm, all_gather_v,
/// counts{lengths})`. Throws `error` with `invalid_argument` unless there is one count for each rank.
template <class T, class Domain, class Collective, class Op = std::plus<>, call_options Options = options<>>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::known_to_all && !call_options<Op>)
std::string explain(const communicator<Domain>& comm, const Collective&, counts lengths, const Op& op = {},
                    const Options& options = {}) {
  std::size_t total = 0;
  if (const outcome wrong = detail::check_counts("counts", lengths.of_ranks, comm.size(), total); wrong.failed()) {
    raise(wrong.cause());
  }
  detail::call_request asked = detail::request_of<T, Collective>(op, options);
  detail::describe_blocks(detail::blocks_of(lengths), asked);
  return detail::explain_call<Collective::collective>(comm, asked, options);
}

/// Like the first, for sums and calls without operation: `explain<float>(comm, all_gather, 100, with(ring))`.
template <class T, class Domain, class Collective, call_options Options>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::equal)
std::string explain(const communicator<Domain>& comm, const Collective& what, std::size_t count,
                    const Options& options) {
  return explain<T>(comm, what, count, std::plus<>{}, options);
}
template <class T, class Domain, class Collective, call_options Options>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::known_to_all)
std::string explain(const communicator<Domain>& comm, const Collective& what, counts lengths, const Options& options) {
  return explain<T>(comm, what, lengths, std::plus<>{}, options);
}

/// Like the first, for all_to_all_v, whose choice does not depend on the counts: `explain<float>(comm, all_to_all_v)`.
template <class T, class Domain, class Collective, call_options Options = options<>>
  requires(detail::lengths_of<Collective>() == detail::block_lengths::known_to_pairs)
std::string explain(const communicator<Domain>& comm, const Collective&, const Options& options = {}) {
  const detail::call_request asked = detail::request_of<T, Collective>(std::plus<>{}, options);
  return detail::explain_call<Collective::collective>(comm, asked, options);
}

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/collective/impl/explain.ipp>
#endif
