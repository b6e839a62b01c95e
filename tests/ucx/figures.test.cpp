// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The figures of ranks that are processes agree with each other, with the calls, and with the prices of the plans.
#include "observe/communication_laws.hpp"
#include "sim/message_plans.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <hocket/observe/registry.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace ucx_test;
namespace observe = hocket::observe;
using hocket::plan::any_algorithm;

std::vector<std::size_t> blocks_of_figures(const any_algorithm& chosen) {
  if (chosen.collective().kind == hocket::plan::collective_kind::barrier) return {0};
  return {0, 3, 20'001};
}

/// Returns by how much the values of each rank have grown.
observe_test::figures differences_of_all(const communicator& comm, const observe::snapshot& before,
                                         const observe::snapshot& after) {
  std::vector<double> own;
  for (std::size_t f = 0; f < after.size(); ++f) {
    for (std::size_t i = 0; i < after[f].samples.size(); ++i)
      own.push_back(after[f].samples[i].value - before[f].samples[i].value);
  }
  std::vector<double> all(own.size() * static_cast<std::size_t>(comm.size()));
  hocket::all_gather(comm, own, all);
  observe_test::figures result;
  std::size_t at = 0;
  for (const observe::family& each : after) {
    for (const observe::sample& one : each.samples) {
      auto& values = result[observe::name_of(each.name, one.labels)];
      for (std::size_t i = at; i < all.size(); i += own.size()) values.push_back(all[i]);
      ++at;
    }
  }
  return result;
}

void check_figures(const communicator& comm, findings& found) {
  observe::registry metrics;
  observe::watch(metrics, comm);
  observe_test::expectation expected;
  const observe::snapshot before = metrics.read();  // the start-up has sent something
  for (const any_algorithm& each : hocket_test::message_plans(comm.size())) {
    for (const std::size_t block : blocks_of_figures(each)) {
      expected.add(each, comm.size(), block);
      observe_test::buffers own(each, comm.size(), comm.rank(), block);
      observe_test::start(comm, each, own).wait();
    }
  }
  constexpr std::uint64_t small_calls = 50;
  std::vector<float> in(3, 1), out(3);
  const any_algorithm doubling{hocket::plan::recursive_doubling{}};
  for (std::uint64_t i = 0; i < small_calls; ++i)
    hocket::all_reduce(comm, in, out, std::plus<>{}, hocket::with(hocket::recursive_doubling));
  expected.add(doubling, comm.size(), 3, small_calls);
  if (comm.size() > 1) {
    const int next = (comm.rank() + 1) % comm.size(), last = (comm.rank() + comm.size() - 1) % comm.size();
    hocket::send_recv(comm, in, hocket::peer{next}, out, hocket::peer{last});
    expected.add("send_recv", static_cast<std::uint64_t>(comm.size()) * 12);
  }
  const auto moved = differences_of_all(comm, before, metrics.read());
  const std::string broken = observe_test::broken_law(moved, comm.size(), expected);
  found.expect(broken.empty(), broken);
}

}  // namespace

TEST_CASE("figures of processes, by shared memory and by the network") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {1, 2, 3}) {
      INFO(ranks << " ranks, " << way.name);
      CHECK(run_ranks(ranks, way, check_figures) == "");
    }
  }
}
