// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Operations have 32-bit sequence numbers: what ranks know of each other stays right when these wrap around.
#include "support/catch.hpp"

#include <hocket/hocket.hpp>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace std::chrono_literals;
using communicator = hocket::local::communicator;

/// Small sums, one of them with late ranks, and operations by messages alone. Returns what has failed; empty if nothing
/// has.
std::string talk(communicator& comm) {
  const int ranks = comm.size();
  const auto options = hocket::with(hocket::push, hocket::timeout(5s));
  int one = 1, sum = 0, later = 0;
  char byte = 1;
  const std::span<const int> mine(&one, 1);
  try {
    if (comm.rank() == 0) {
      hocket::all_reduce(comm, mine, std::span(&sum, 1), std::plus<>{}, options);
    } else {
      auto late = hocket::all_reduce_async(comm, mine, std::span(&sum, 1), std::plus<>{}, options);
      late.test();  // its own contribution is written
      std::this_thread::sleep_for(100ms);
      late.wait();
    }
    for (int i = 0; i < 7; ++i) {
      hocket::broadcast(comm, std::span(&byte, 1), hocket::root{0},
                        hocket::with(hocket::binomial, hocket::timeout(5s)));
    }
    hocket::all_reduce(comm, mine, std::span(&later, 1), std::plus<>{}, options);
  } catch (const std::exception& caught) {
    return caught.what();
  }
  return sum == ranks && later == ranks ? "" : "wrong sums";
}

/// Returns what fails in `talk` after operations that only take sequence numbers; `skip` adds some of them.
std::string talk_after(int ranks, std::uint32_t operations,
                       const std::function<void(communicator&, std::uint32_t)>& skip) {
  std::vector<std::string> wrong(static_cast<std::size_t>(ranks));
  std::barrier together(ranks);
  hocket::local::run(ranks, [&](auto comm) {
    hocket::barrier(comm);
    for (std::uint32_t left = operations; left > 0;) {
      const std::uint32_t step = std::min(left, std::uint32_t{1} << 28);
      together.arrive_and_wait();  // no rank is ever far ahead
      skip(comm, step);
      left -= step;
    }
    together.arrive_and_wait();
    wrong[static_cast<std::size_t>(comm.rank())] = talk(comm);
    together.arrive_and_wait();  // a rank that has failed leaves no other rank alone in a call
  });
  std::string all;
  for (const std::string& each : wrong) all += each;
  return all;
}

}  // namespace

TEST_CASE("operations give right results when their sequence numbers pass 2^31 and wrap around") {
  for (const int ranks : {2, 3}) {
    for (const std::uint32_t operations : {0x7fff'ffc0U, 0x8000'0040U, 0xffff'fff0U}) {
      INFO(ranks << " ranks, after " << operations << " operations");
      CHECK(talk_after(ranks, operations, [](communicator& comm, std::uint32_t step) {
              auto& state = hocket::detail::communicator_access::state(comm);
              state.complete_all(state.take_sequence(step) + step - 1);
            }) == "");
    }
  }
}

TEST_CASE("operations give right results after 2^31 operations that have checked no flag", "[.slow]") {
  CHECK(talk_after(2, 0x8000'0040U, [](communicator& comm, std::uint32_t step) {
          auto& state = hocket::detail::communicator_access::state(comm);
          for (std::uint32_t i = 0; i < step; ++i) state.complete(state.take_sequence());
        }) == "");
}
