// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Reports which algorithm a call would choose, and why: the cost model's table, row by row.
#pragma once

#include <hocket/collective/detail/explain_diagnostics.hpp>
#include <hocket/collective/host/blocks.hpp>
#include <hocket/collective/host/call_settings.hpp>
#include <hocket/collective/host/effective_operation.hpp>
#include <hocket/communicator/communicator.hpp>
#include <hocket/communicator/planned_call.hpp>
#include <hocket/core/config.hpp>
#include <hocket/core/error.hpp>
#include <hocket/core/not_understood.hpp>
#include <hocket/core/options.hpp>
#include <hocket/core/strong_types.hpp>
#include <hocket/kernel/host/element_kernel.hpp>
#include <hocket/plan/plan.hpp>

#include <cstddef>
#include <functional>
#include <string>

HOCKET_BEGIN_NAMESPACE
namespace detail {

/// Returns the request of a call of `Collective` with these options, without the lengths.
template <class T, class Collective, class Op, class Options>
call_request request_of(root at) {
  call_request asked{
      .what = {Collective::collective, at.rank}, .element_size = sizeof(T), .lengths = lengths_of<Collective>()};
  asked.checksummed = Options::template has<kind::integrity>;
  asked.has_repeatable_choice = has_repeatable_choice<Options>();
  if constexpr (plan::collective{Collective::collective, 0}.reduces()) {
    using effective = effective_operation_t<Op, T, Options>;
    asked.element_size = kernel::element_kernel_of<effective, T>.size;
    asked.order = weakest_order<effective, T>();
  }
  return asked;
}

/// Returns the table for a request on the communicator's transport.
template <class Domain>
std::string explain_request(const communicator<Domain>& comm, const call_request& asked, const call_settings& settings);

template <plan::collective_kind Kind, class Domain, class Options>
std::string explain_call(const communicator<Domain>& comm, const call_request& asked, const Options& options) {
  const auto named = named_plan<Kind>(options, asked.what.root);
  return explain_request(comm, asked, settings_of(options, named));
}

template <class T, class Collective, class Op, class Domain, class Options>
std::string explain_equal_blocks(const communicator<Domain>& comm, std::size_t count, root at, const Options& options) {
  call_request asked = request_of<T, Collective, Op, Options>(at);
  asked.block_elements = count;
  return explain_call<Collective::collective>(comm, asked, options);
}

template <class T, class Collective, class Op, class Domain, class Options>
std::string explain_blocks(const communicator<Domain>& comm, counts lengths, root at, const Options& options) {
  std::size_t total = 0;
  if (const outcome wrong = check_counts("counts", lengths.of_ranks, comm.size(), total); wrong.failed()) {
    raise(wrong.cause());
  }
  call_request asked = request_of<T, Collective, Op, Options>(at);
  describe_blocks(blocks_of(lengths), asked);
  return explain_call<Collective::collective>(comm, asked, options);
}

}  // namespace detail

/// Returns the table from which the collective chooses for `count` elements of T per rank's `out` (per block if the
/// result has blocks): `explain<float>(comm, all_reduce, 1 << 20)`. Options are taken into account:
/// `explain<float>(comm, all_reduce, 1 << 20, std::plus<>{}, with(wire<bfloat16>))`. If the collective has a root, it
/// is rank 0, or comes before the options as in the call: `explain<float>(comm, reduce, 100, op, root{2})`. Local; the
/// result is the same on all ranks. Throws `error` with `invalid_argument` if the root is not a rank.
template <class T, class Domain, class Collective, class Op = std::plus<>, call_options Options = options<>>
  requires detail::explained_call<detail::block_lengths::equal, T, Collective, Op, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, std::size_t count, const Op& = {},
                    const Options& options = {}) {
  return detail::explain_equal_blocks<T, Collective, Op>(comm, count, root{0}, options);
}
template <class T, class Domain, class Collective, class Op, call_options Options = options<>>
  requires detail::explained_rooted_call<detail::block_lengths::equal, T, Collective, Op, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, std::size_t count, const Op&, root at,
                    const Options& options = {}) {
  return detail::explain_equal_blocks<T, Collective, Op>(comm, count, at, options);
}

/// Like the above, for all_gather_v, reduce_scatter_v, gather_v and scatter_v with these counts:
/// `explain<float>(comm, all_gather_v, counts{lengths})`. Throws `error` with `invalid_argument` unless there is one
/// count for each rank.
template <class T, class Domain, class Collective, class Op = std::plus<>, call_options Options = options<>>
  requires detail::explained_call<detail::block_lengths::known_to_all, T, Collective, Op, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, counts lengths, const Op& = {},
                    const Options& options = {}) {
  return detail::explain_blocks<T, Collective, Op>(comm, lengths, root{0}, options);
}

/// Like the first, for sums and calls without operation: `explain<float>(comm, all_gather, 100, with(ring))`, and
/// `explain<float>(comm, gather, 100, root{2}, with(flat))`.
template <class T, class Domain, class Collective, call_options Options>
  requires detail::explained_call<detail::block_lengths::equal, T, Collective, std::plus<>, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, std::size_t count, const Options& options) {
  return detail::explain_equal_blocks<T, Collective, std::plus<>>(comm, count, root{0}, options);
}
template <class T, class Domain, class Collective, call_options Options = options<>>
  requires detail::explained_rooted_call<detail::block_lengths::equal, T, Collective, std::plus<>, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, std::size_t count, root at,
                    const Options& options = {}) {
  return detail::explain_equal_blocks<T, Collective, std::plus<>>(comm, count, at, options);
}
template <class T, class Domain, class Collective, call_options Options>
  requires detail::explained_call<detail::block_lengths::known_to_all, T, Collective, std::plus<>, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, counts lengths, const Options& options) {
  return detail::explain_blocks<T, Collective, std::plus<>>(comm, lengths, root{0}, options);
}
template <class T, class Domain, class Collective, call_options Options = options<>>
  requires detail::explained_rooted_call<detail::block_lengths::known_to_all, T, Collective, std::plus<>, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, counts lengths, root at,
                    const Options& options = {}) {
  return detail::explain_blocks<T, Collective, std::plus<>>(comm, lengths, at, options);
}

/// Like the first, for all_to_all_v, whose choice does not depend on the counts: `explain<float>(comm, all_to_all_v)`.
template <class T, class Domain, class Collective, call_options Options = options<>>
  requires detail::explained_call<detail::block_lengths::known_to_pairs, T, Collective, std::plus<>, Options>
std::string explain(const communicator<Domain>& comm, const Collective&, const Options& options = {}) {
  const detail::call_request asked = detail::request_of<T, Collective, std::plus<>, Options>(root{0});
  return detail::explain_call<Collective::collective>(comm, asked, options);
}

/// Deleted: the template argument `Why` is the reason.
template <class T = void, class... Given, auto Why = detail::why_not_explained<T, Given...>()>
detail::not_understood explain(const Given&...) = delete;

HOCKET_END_NAMESPACE

#if !defined(HOCKET_SEPARATE_COMPILATION)
#include <hocket/collective/impl/explain.ipp>
#endif
