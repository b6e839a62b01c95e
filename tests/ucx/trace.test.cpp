// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// Compares the steps of processes, and their bytes, with the actions of the plan.
#include "support/trace.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace {

using namespace ucx_test;
using hocket_test::difference;
using hocket_test::trace;

/// Calls `call(options)`, which runs `plan` on blocks of `size` numbers, and compares its steps with the plan.
template <class Call>
void check_steps(const communicator& comm, findings& found, const hocket::plan::any_algorithm& plan, std::size_t size,
                 Call call) {
  trace steps;
  call(hocket::with(hocket::algorithm(plan), hocket::observe_steps(steps.observer())));
  hocket_test::traced_run run{plan, comm.size(), comm.rank(), size, sizeof(std::uint64_t)};
  const std::size_t limit = staging_limit(comm);
  if (plan.shape(comm.size()).peer_pointers && limit > 0) run.segment_elements = limit / sizeof(std::uint64_t);
  const std::string text = difference(steps.events(), run);
  found.expect(text.empty(), text);
}

void check_trace(const communicator& comm, findings& found, const hocket::plan::any_algorithm& plan, std::size_t size) {
  const auto in = vector_of(comm.rank(), size);
  std::vector<std::uint64_t> out(size);
  check_steps(comm, found, plan, size,
              [&](const auto& options) { hocket::all_reduce(comm, in, out, std::plus<>{}, options); });
  found.equal(out, sum_of(comm.size(), size), plan.name());
}

void check_traces(const communicator& comm, findings& found, std::size_t size) {
  using namespace hocket;
  check_trace(comm, found, plan::ring_all_reduce{}, size);
  check_trace(comm, found, plan::recursive_doubling{}, size);
  check_trace(comm, found, plan::halving_doubling{}, size);
  check_trace(comm, found, plan::double_tree{4}, size);
  if (!has_windows(comm)) return;
  check_trace(comm, found, plan::one_shot{}, size);
  check_trace(comm, found, plan::two_shot{}, size);
  const bool fits_a_line = size * sizeof(std::uint64_t) <= hocket::detail::push_line::capacity;
  if (fits_a_line) check_trace(comm, found, plan::push_all_reduce{}, size);
}

void check_other_traces(const communicator& comm, findings& found, std::size_t size) {
  using namespace hocket;
  const std::size_t whole = size * static_cast<std::size_t>(comm.size());
  const std::vector<std::uint64_t> block(size, 1), blocks(whole, 1);
  std::vector<std::uint64_t> out(size), outs(whole);
  const auto scatter = [&](const auto& options) { reduce_scatter(comm, blocks, out, std::plus<>{}, options); };
  const auto gather = [&](const auto& options) { all_gather(comm, block, outs, options); };
  const auto exchange = [&](const auto& options) { all_to_all(comm, blocks, outs, options); };
  const int last = comm.size() - 1;
  const auto spread = [&](const auto& options) { broadcast(comm, out, root{last}, options); };
  check_steps(comm, found, plan::ring_reduce_scatter{}, size, scatter);
  check_steps(comm, found, plan::pairwise_reduce_scatter{}, size, scatter);
  check_steps(comm, found, plan::ring_all_gather{}, size, gather);
  check_steps(comm, found, plan::pairwise_all_gather{}, size, gather);
  check_steps(comm, found, plan::pairwise_all_to_all{}, size, exchange);
  check_steps(comm, found, plan::binomial_broadcast{last}, size, spread);
  check_steps(comm, found, plan::dissemination_barrier{}, 0, [&](const auto& options) { barrier(comm, options); });
  if (!has_windows(comm)) return;
  check_steps(comm, found, plan::direct_broadcast{last}, size, spread);
  if (const std::size_t limit = staging_limit(comm); limit > 0 && whole * sizeof(std::uint64_t) > limit) return;
  check_steps(comm, found, plan::direct_reduce_scatter{}, size, scatter);
  check_steps(comm, found, plan::direct_all_gather{}, size, gather);
  check_steps(comm, found, plan::direct_all_to_all{}, size, exchange);
}

}  // namespace

TEST_CASE("the trace of a collective between processes equals the actions of its plan") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [](communicator& comm, findings& found) {
              for (const std::size_t size : {0U, 1U, 7U, 1001U, 100001U}) {
                check_traces(comm, found, size);
                check_other_traces(comm, found, size);
              }
            }) == "");
    }
  }
}

TEST_CASE("short sums, which use a separate implementation, report the steps of the push plan") {
  CHECK(run_ranks(3, shared_memory, [](communicator& comm, findings& found) {
          const auto in = vector_of(comm.rank(), 5);
          std::vector<std::uint64_t> out(5);
          trace steps;
          hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::observe_steps(steps.observer())));
          const std::string text = difference(
              steps.events(), {hocket::plan::push_all_reduce{}, comm.size(), comm.rank(), 5, sizeof(std::uint64_t)});
          found.expect(text.empty(), text);
        }) == "");
}
