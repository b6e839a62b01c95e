// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx nlohmann_json
//
// Adaptors of UCX: traces of processes, and faults between them.
#include "support/scratch.hpp"
#include "transport/adaptor/last_call.hpp"
#include "transport/adaptor/trace_reader.hpp"
#include "ucx/ranks.hpp"

#include <hocket/collective/explain.hpp>
#include <hocket/group/adapted.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace hocket_test;
using namespace ucx_test;
using hocket::errc;
using hocket::adaptor::fault_kind;

TEST_CASE("processes write a common trace") {
  for (const route& way : {shared_memory, network}) {
    const scratch_directory scratch;
    const std::string path = scratch.path() + "/trace.json";
    INFO(way.name);
    CHECK(run_ranks(3, way, [&](communicator& comm, findings& found) {
            auto seen = hocket::traced(comm);
            const auto mine = vector_of(comm.rank(), 10'000);
            std::vector<std::uint64_t> out(mine.size());
            hocket::all_reduce(seen, mine, out, std::plus<>{}, hocket::with(hocket::ring));
            found.equal(out, sum_of(3, mine.size()), "the sum");
            hocket::barrier(seen);
            hocket::write_trace(seen, path);
          }) == "");
    const trace_summary found = read_trace(path);
    CHECK(found.problem == "");
    CHECK(found.ranks == 3);
    CHECK(found.steps >=
          3 * (8 + 4));  // two sends and two receives for each half of the ring, and those of the barrier
    CHECK(found.arrows_begun == found.arrows_ended);
    CHECK(found.backward_arrows == 0);
  }
}

TEST_CASE("the trace of short sums, which use a separate implementation, equals the push plan, between processes") {
  CHECK(run_ranks(3, shared_memory, [&](communicator& comm, findings& found) {
          auto seen = hocket::traced(comm);
          found.expect(hocket::detail::communicator_access::state(seen).pushes(), "short sums do not use push");
          for (const std::size_t size : {0U, 1U, 7U}) {
            const auto mine = vector_of(comm.rank(), size);
            std::vector<std::uint64_t> out(size);
            for (const bool late : {false, true}) {
              hocket::barrier(comm);
              if (late && comm.rank() == 1) std::this_thread::sleep_for(5ms);
              hocket::all_reduce(seen, mine, out);
              found.equal(out, sum_of(3, size), "the sum");
              const std::string differs =
                  difference_of_last_call(seen, {hocket::plan::push_all_reduce{}, 3, comm.rank(), size, 8});
              found.expect(differs.empty(), differs);
            }
          }
        }) == "");
}

TEST_CASE("an adaptor changes neither the choice of an algorithm nor the way of long buffers between processes") {
  for (const route& way : {shared_memory, posix_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(3, way, [](communicator& comm, findings& found) {
            auto seen = hocket::traced(comm);
            for (const std::size_t count : {1U, 1000U, 300'000U}) {
              const std::string plain = hocket::explain<std::uint64_t>(comm, hocket::all_gather, count);
              found.equal(hocket::explain<std::uint64_t>(seen, hocket::all_gather, count), plain, "the choice");
              const auto mine = vector_of(comm.rank(), count);
              std::vector<std::uint64_t> all(3 * count), expected(3 * count);
              hocket::all_gather(comm, mine, expected);
              hocket::all_gather(seen, mine, all);
              found.expect(all == expected, "the result of an all_gather differs");
            }
          }) == "");
  }
}

TEST_CASE("between processes, a cut causes a timeout on both sides, and a changed bit is detected") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const hocket::adaptor::faults cut{{.what = fault_kind::cut, .rank = 0, .step = 5, .peer = 1}};
            auto apart = hocket::with_faults(comm, cut);
            apart.set_timeout(200ms);
            const auto cause = found.fails(errc::timeout, "a call across the cut", [&] {
              for (;;) hocket::barrier(apart);
            });
            found.equal(cause.context.peer, 1 - comm.rank(), "the culprit");
            const bool says_link = cause.message().find("or the link to it is cut") != std::string::npos;
            found.expect(says_link != has_windows(comm),
                         "the link is mentioned if and only if there are no windows: " + cause.message());

            const hocket::adaptor::faults flip{{.what = fault_kind::corrupt, .rank = 1, .step = 2}};
            auto noisy = hocket::with_faults(comm, flip);
            const auto mine = vector_of(comm.rank(), 1000);
            std::vector<std::uint64_t> out(mine.size());
            found.fails(errc::corrupted, "a call with a changed bit", [&] {
              for (;;) {
                hocket::all_reduce(noisy, mine, out, std::plus<>{}, hocket::with(hocket::require(hocket::checksummed)));
                found.equal(out, sum_of(2, mine.size()), "the sum");
              }
            });
          }) == "");
  }
}
