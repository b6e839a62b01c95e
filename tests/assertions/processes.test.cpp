// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The comparison of calls between processes.
// needs: ucx
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/operation/operations.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

static_assert(HOCKET_ASSERTION_LEVEL == 3);

using namespace ucx_test;

namespace {

constexpr route routes[] = {shared_memory, network};

std::string site(int line) { return "processes.test.cpp:" + std::to_string(line); }

/// Element count for which all messages of a sum and of a maximum by `ring` carry the same 12 signature bits.
template <class T>
std::size_t colliding_count() {
  constexpr auto kind = hocket::plan::collective_kind::all_reduce;
  constexpr std::uint32_t sum = hocket::detail::reduction_signature<kind, std::plus<>, T>;
  constexpr std::uint32_t maximum = hocket::detail::reduction_signature<kind, hocket::maximum, T>;
  const auto bits = [](std::uint32_t types, std::size_t count) {
    const std::uint32_t kind_of_call = hocket::detail::call_signature(types, "ring", 0);
    return hocket::detail::mix(hocket::detail::call_signature(kind_of_call, count), 2) & 0xfffU;  // of 2 pieces
  };
  for (std::size_t count = 100; count < 1'000'000; ++count) {
    if (bits(sum, count) == bits(maximum, count)) return count;
  }
  return 0;
}

/// Rank 0 runs `one` and rank 1 runs `other`; both must fail, with every text of `says`.
void check(const std::function<void(communicator&)>& one, const std::function<void(communicator&)>& other,
           const std::vector<std::string>& says) {
  for (const route& way : routes) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [&](communicator& comm, findings& found) {
            const hocket::failure cause =
                found.fails(hocket::errc::mismatch, "the call", [&] { (comm.rank() == 0 ? one : other)(comm); });
            for (const std::string& text : says) {
              found.expect(cause.message().find(text) != std::string::npos,
                           "the message lacks '" + text + "': " + cause.message());
            }
            // The code depends on whether the other rank's report has arrived.
            try {
              hocket::barrier(comm);
              found.expect(false, "the next call did not fail");
            } catch (const hocket::error& next) {
              found.expect(next.code() == hocket::errc::revoked || next.code() == hocket::errc::mismatch, next.what());
            }
            std::this_thread::sleep_for(100ms);  // the other rank may still request the error text
          }) == "");
  }
}

}  // namespace

TEST_CASE("processes: a mixed sequence of equal calls gives correct results") {
  for (const route& way : routes) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            for (std::size_t round = 0; round < 20; ++round) {
              std::vector<std::uint64_t> few = vector_of(comm.rank(), 3), many = vector_of(comm.rank(), 40'000 + round);
              const auto in = vector_of(comm.rank(), 300 + round);
              std::vector<std::uint64_t> out(in.size()), all(2 * in.size());
              hocket::all_reduce(comm, hocket::in_place(few));
              found.expect(few == sum_of(2, 3), "a few");
              hocket::request sum = hocket::all_reduce_async(comm, in, out);
              hocket::request large =
                  hocket::all_reduce_async(comm, hocket::in_place(many), std::plus<>{}, hocket::with(hocket::ring));
              hocket::all_gather(comm, in, all);
              hocket::broadcast(comm, few, hocket::root{static_cast<int>(round % 2)});
              large.wait();
              sum.wait();
              found.expect(out == sum_of(2, out.size()), "all_reduce_async");
              found.expect(many == sum_of(2, many.size()), "all_reduce_async by ring");
              found.equal(all.back(), element(1, in.size() - 1), "all_gather");
            }
            auto part = hocket::split(comm, hocket::color{0});
            auto shared = hocket::allocate<float>(part, 1000);
            hocket::all_reduce(part, hocket::in_place(shared));
            found.equal(shared[999], 0.0F, "all_reduce on a part");
          }) == "");
  }
}

TEST_CASE("processes: calls that differ fail on both ranks, and the error names both call sites") {
  const std::string broadcast = site(__LINE__ + 3), sum = site(__LINE__ + 7);
  const auto broadcasts = [](communicator& comm) {
    std::vector<float> data(1);
    hocket::broadcast(comm, data, hocket::root{0});  // the root waits for no rank
  };
  const auto sums = [](communicator& comm) {
    std::vector<float> data(300);
    hocket::all_reduce(comm, hocket::in_place(data));
  };
  check(broadcasts, sums, {"broadcast", "all_reduce", broadcast, sum});
  check(sums,
        [](communicator& comm) {
          std::vector<float> data(301);
          hocket::all_reduce_async(comm, hocket::in_place(data)).wait();
        },
        {"300 elements", "301 elements", sum, site(__LINE__ - 2)});
}

TEST_CASE("processes: calls whose messages carry equal signature bits are distinguished") {
  const std::size_t count = colliding_count<float>();
  REQUIRE(count > 0);
  INFO(count << " elements");
  check(
      [&](communicator& comm) {
        std::vector<float> data(count);
        hocket::all_reduce(comm, hocket::in_place(data), std::plus<>{}, hocket::with(hocket::ring));
      },
      [&](communicator& comm) {
        std::vector<float> data(count);
        hocket::all_reduce(comm, hocket::in_place(data), hocket::maximum{}, hocket::with(hocket::ring));
      },
      {"plus", "maximum", site(__LINE__ - 6), site(__LINE__ - 2)});
}
