// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// wait_all and wait_any for operations between processes, also of communicators that are destroyed, used by another
/// thread, or lose a rank.
#include "support/catch.hpp"
#include "support/held_call.hpp"
#include "ucx/ranks.hpp"

#include <hocket/core/wait.hpp>
#include <hocket/group/split.hpp>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <unistd.h>

namespace {

using namespace ucx_test;
using hocket::errc;
using hocket_test::copies_of;
using hocket_test::held_call;
using hocket_test::held_plus;

constexpr route routes_to_wait[] = {shared_memory, network};
constexpr int killed_rank = 2;

/// A sum of a vector, in flight on each of several communicators.
struct sums_in_flight {
  sums_in_flight(const communicator& comm, std::size_t size) : size_(size), in_(vector_of(comm.rank(), size)) {}

  void start(const communicator& on) {
    out_.emplace_back(size_);
    requests.push_back(hocket::all_reduce_async(on, in_, out_.back()));
  }
  void check(int ranks, std::size_t which, findings& found) const {
    found.equal(out_[which], ucx_test::sum_of(ranks, size_),
                "sum " + std::to_string(which) + " of " + std::to_string(size_));
  }

 private:
  std::size_t size_;
  std::vector<std::uint64_t> in_;
  std::deque<std::vector<std::uint64_t>> out_;

 public:
  std::vector<hocket::request> requests;  ///< destroyed before their buffers
};

}  // namespace

TEST_CASE("between processes, wait_all and wait_any end operations in an order of each rank's own") {
  for (const route& way : routes_to_wait) {
    CHECK(run_ranks(3, way, [](communicator& comm, findings& found) {
            for (const std::size_t size : {std::size_t{1}, std::size_t{1000}, std::size_t{40'000}}) {
              sums_in_flight sums(comm, size);
              {
                const auto comms = copies_of(comm, 3);  // destroyed before the wait
                for (std::size_t i = 0; i < comms.size(); ++i)
                  sums.start(comms[(i + static_cast<std::size_t>(comm.rank())) % comms.size()]);
              }
              const std::size_t any = hocket::wait_any(sums.requests);
              found.expect(any < 3 && sums.requests[any].is_empty(), "no index of wait_any");
              if (any < 3) sums.check(comm.size(), any, found);
              hocket::wait_all(sums.requests);
              for (std::size_t i = 0; i < 3; ++i) sums.check(comm.size(), i, found);
            }
            std::error_code code = errc::timeout;
            hocket::wait_all(std::span<hocket::request>(), code);
            found.expect(!code, "the code of an empty list");
            found.equal(hocket::wait_any(std::span<hocket::request>()), std::size_t{0}, "any of an empty list");
            meet_all(comm);
          }) == "");
  }
}

TEST_CASE("between processes, wait_all and wait_any end all operations but those that another thread prevents") {
  for (const route& way : routes_to_wait) {
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const auto comms = copies_of(comm, 2);
            sums_in_flight sums(comm, 1000);
            for (const communicator& each : comms) sums.start(each);
            held_call held;
            const int one = 1;
            int two = 0;
            const auto use = [&](held_call* by) {
              hocket::all_reduce(comms[0], std::span(&one, 1), std::span(&two, 1), held_plus{by});
            };
            if (comm.rank() == 0) {
              std::thread user([&] { use(&held); });
              while (!held.entered) std::this_thread::yield();
              std::error_code code;
              hocket::wait_all(sums.requests, code);
              found.expect(code == errc::concurrent_use, "the code of wait_all: " + code.message());
              found.equal(hocket::wait_any(sums.requests), std::size_t{1}, "wait_any");
              found.equal(hocket::wait_any(sums.requests, code), std::size_t{0}, "wait_any of a used communicator");
              found.expect(code == errc::concurrent_use, "the code of wait_any: " + code.message());
              held.may_end = true;
              user.join();
            } else {
              use(nullptr);
            }
            hocket::wait_all(sums.requests);
            for (std::size_t i = 0; i < 2; ++i) sums.check(2, i, found);
            found.equal(two, 2, "the sum of the other thread");
            meet_all(comm);
          }) == "");
  }
}

TEST_CASE("between processes, wait_all reports the first failure of the list, and wait_any each one") {
  for (const route& way : routes_to_wait) {
    auto results = results_of(3, way, [](const world& where, findings& found) {
      auto comm = hocket::ucx::connect(where);
      meet_all(comm);
      const bool is_killed = comm.rank() == killed_rank;
      const auto pair = hocket::split(comm, hocket::color{is_killed ? 1 : 0});
      const auto all = copies_of(comm, 2);
      meet_all(comm);
      if (is_killed) ::raise(SIGKILL);
      const std::vector<std::uint64_t> in = vector_of(comm.rank(), 1000);
      std::vector<std::uint64_t> out[3] = {in, in, in};
      std::vector<hocket::request> requests;
      requests.push_back(hocket::all_reduce_async(pair, in, out[0]));
      requests.push_back(hocket::all_reduce_async(all[0], in, out[1]));
      requests.push_back(hocket::all_reduce_async(all[1], in, out[2]));
      std::error_code code;
      hocket::wait_all(requests, code);
      found.expect(code == errc::peer_lost, "the code of wait_all: " + code.message());
      const auto cause = found.fails(errc::peer_lost, "wait_all", [&] { hocket::wait_all(requests); });
      found.equal(cause.context.peer, killed_rank, "rank named by wait_all");
      found.equal(cause.message(), requests[1].error().message(), "the first failure of the list");
      found.equal(out[0], ucx_test::sum_of(2, in.size()), "the sum that has not failed");
      found.equal(hocket::wait_any(requests, code), std::size_t{0}, "the first to end");
      found.expect(!code, "the code of success");
      for (const std::size_t next : {std::size_t{1}, std::size_t{2}}) {
        found.equal(hocket::wait_any(requests, code), next, "the next to end");
        found.expect(code == errc::peer_lost, "the code of wait_any: " + code.message());
      }
      found.equal(hocket::wait_any(requests, code), requests.size(), "none is left");
    });
    CHECK(results[killed_rank].signal == SIGKILL);
    results[killed_rank] = {};
    results[killed_rank].exit_code = 0;
    CHECK(hocket::launch::describe_failures(results) == "");
  }
}
