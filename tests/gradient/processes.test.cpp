// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// needs: ucx
//
// Gradients and optimizers between processes, over shared memory and over TCP; and the part of the communication that
// is hidden if every message takes 2 ms longer.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/gradient/norm.hpp>
#include <hocket/group/adapted.hpp>
#include <hocket/group/split.hpp>
#include <hocket/mesh/mesh.hpp>
#include <hocket/optimizer/optimizer.hpp>
#include <hocket/optimizer/rule/adamw.hpp>

#include "gradient/step.hpp"
#include "support/catch.hpp"
#include "ucx/ranks.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <malloc.h>
#include <unistd.h>

namespace {

using namespace ucx_test;
using namespace hocket_test::gradient;
using namespace std::chrono_literals;

/// Trains, and returns a hash of all bits of the parameters, which is equal on all ranks.
template <class When, class Sharding>
std::uint64_t trained(communicator& comm, When when, Sharding sharding) {
  const auto layout = small_layout();
  const auto fetching = hocket::split(comm, hocket::color{0}, hocket::key{comm.rank()});
  auto gradients = hocket::gradients<hocket::exact_sum<float>>(comm, layout, when, sharding);
  auto parameters = hocket::parameters<float>(fetching, layout, sharding);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{});
  for (int step = 0; step < 3; ++step) {
    take_exact_step(gradients, comm.rank(), comm.size(), 2);
    optimizer.step(gradients, 0.01, hocket::clip_factor(hocket::norm(gradients).value, 1000));
  }
  std::uint64_t told = 0;
  for (std::size_t b = 0; b < layout.buckets(); ++b) {
    parameters.gather(b);
    for (const std::size_t i : layout.members(b)) {
      for (const float each : parameters.of(i)) told = mixed(told ^ std::bit_cast<std::uint32_t>(each));
    }
    parameters.release(b);
  }
  return told;
}

TEST_CASE("processes train the same bits at every stage") {
  for (const route& way : {shared_memory, network}) {
    for (const int ranks : {2, 3, 4}) {
      INFO(way.name << ", " << ranks << " ranks");
      CHECK(run_ranks(ranks, way, [](communicator& comm, findings& found) {
              const std::uint64_t plain = trained(comm, hocket::last_microbatch, hocket::zero<0>);
              // Like one process alone: a group of this rank.
              auto alone = hocket::split(comm, hocket::color{comm.rank()}, hocket::key{0});
              found.equal(plain, trained(alone, hocket::last_microbatch, hocket::zero<0>), "one process");
              found.equal(trained(comm, hocket::last_microbatch, hocket::zero<1>), plain, "zero<1>");
              found.equal(trained(comm, hocket::every_microbatch, hocket::zero<2>), plain, "zero<2>");
              found.equal(trained(comm, hocket::every_microbatch, hocket::zero<3>), plain, "zero<3>");
            }) == "");
    }
  }
}

TEST_CASE("processes with different layouts get an error that names the parameter that differs") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(3, way, [](communicator& comm, findings& found) {
            const hocket::parameter_layout layout({{"w", 64}, {comm.rank() == 2 ? "gain" : "bias", 64}});
            std::string what;
            try {
              hocket::gradients<float>(comm, layout, hocket::last_microbatch, hocket::zero<1>);
            } catch (const hocket::error& error) {
              what = error.what();
            }
            found.expect(what.find("rank 0 has parameter 1 'bias' of 64 elements in bucket 0, rank 2 has parameter 1 "
                                   "'gain'") != std::string::npos,
                         "the message: " + what);
          }) == "");
  }
}

/// Stops this process. A child kills it after the others have waited for it without success.
void stop_and_die() {
  if (::fork() == 0) {
    ::sleep(3);
    ::kill(::getppid(), SIGKILL);
    ::_exit(0);
  }
  ::raise(SIGSTOP);
}

/// Runs steps of zero<3> on shards and replicas until one fails. Rank 2 stops after the fifth step.
void train_until_failure(const communicator& comm, findings& found) {
  const auto ranks = hocket::mesh<"replica", "shard">(comm, {2, 2});
  const auto& shards = ranks.along<"shard">();
  const auto& replicas = ranks.along<"replica">();
  const auto fetching = hocket::split(shards, hocket::color{0}, hocket::key{shards.rank()});
  const hocket::parameter_layout layout({{"a", 200'000}, {"b", 300'000}, {"c", 100}}, {1, 1, 1});
  auto gradients = hocket::gradients<float>(hocket::hybrid(shards, replicas), layout, hocket::scatter_every_reduce_last,
                                            hocket::zero<3>);
  auto parameters = hocket::parameters<float>(hocket::hybrid(fetching, replicas), layout, hocket::zero<3>);
  auto optimizer = hocket::make_optimizer<float>(parameters, hocket::adamw{});
  for (int step = 0;; ++step) {
    if (comm.rank() == 2 && step == 5) stop_and_die();
    for (int m = 0; m < 2; ++m) {
      parameters.hold(0, 3);
      gradients.begin_microbatch(m, 2);
      for (std::size_t i = 3; i-- > 0;) {
        for (float& each : gradients.of(i)) each += 1 + parameters.of(i)[0];
        gradients.ready(i);
      }
      parameters.end_hold(0, 3);
      gradients.end_microbatch(1, 1);
    }
    const auto totals = gradients.finish();
    optimizer.step(gradients, 1e-3, hocket::norm(gradients).step_factor(totals.count, 1.0));
    found.expect(totals.count == 8, "a wrong count");
  }
}

// Messages to the stopped process are cancelled when the UCX objects are destroyed. Rank 3 waits for that process in
// any case; the other ranks may also wait for rank 3, which has left if it was the first to time out.
TEST_CASE("if a process is stopped during a step, each of the others ends with an error") {
  const auto train = [](const world& where, findings& found) {
    ::mallopt(M_PERTURB, 0xa5);  // fills freed memory, to show its use
    try {
      const auto comm = hocket::ucx::connect(where, {.timeout = 1s});
      train_until_failure(comm, found);
      found.expect(false, "training did not fail");
    } catch (const hocket::error& cause) {
      const bool others_left = where.rank != 3 && cause.code() == hocket::errc::peer_lost;
      found.expect(cause.code() == hocket::errc::timeout || others_left, cause.what());
      found.expect(cause.context().peer >= 0, std::string("no peer is named: ") + cause.what());
    }
  };
  for (int round = 0; round < 2; ++round) {
    const auto results = results_of(4, shared_memory, train);
    for (std::size_t rank = 0; rank < results.size(); ++rank) {
      INFO("rank " << rank << ": signal " << results[rank].signal << ", " << results[rank].output);
      CHECK(results[rank].signal == (rank == 2 ? SIGKILL : 0));
      if (rank != 2) CHECK(results[rank].exit_code == 0);
    }
  }
}

/// Faults that delay every step of every rank by 2 ms.
hocket::adaptor::faults slow_links(int ranks) {
  hocket::adaptor::faults all;
  for (int rank = 0; rank < ranks; ++rank) {
    for (std::uint64_t step = 0; step < 4000; ++step) {
      all.push_back({.what = hocket::adaptor::fault_kind::delay, .rank = rank, .step = step, .time = 2ms});
    }
  }
  return all;
}

constexpr std::size_t layers = 12;

/// Seconds that one step waits for communication, with a backward pass that sleeps for 25 ms per layer: a layer takes
/// about ten steps of its collective, and so about 20 ms to communicate.
template <class Comm>
double exposed_seconds(const Comm& comm, bool overlap) {
  std::vector<hocket::parameter> parameters;
  for (std::size_t i = 0; i < layers; ++i) parameters.push_back({"layer " + std::to_string(i), 10000});
  auto gradients = hocket::gradients<float>(comm, hocket::parameter_layout(parameters, {1, 1}), hocket::last_microbatch,
                                            hocket::zero<0>);
  gradients.begin_microbatch(0, 1);
  for (std::size_t i = layers; i-- > 0;) {
    for (float& each : gradients.of(i)) each += 1;
    for (int part = 0; part < 50; ++part) {
      std::this_thread::sleep_for(500us);
      gradients.progress();
    }
    if (overlap) gradients.ready(i);
  }
  gradients.end_microbatch(0, 1);
  return gradients.finish().exposed_seconds;
}

TEST_CASE("if messages take 2 ms longer, a backward pass hides at least 60 % of its communication") {
  for (const route& way : {shared_memory, network}) {
    INFO(way.name);
    CHECK(run_ranks(2, way, [](communicator& comm, findings& found) {
            const auto slow = hocket::with_faults(comm, slow_links(2));
            std::vector<double> ratios;
            double with = 0, without = 0;
            for (int i = 0; i < 3; ++i) {
              without = exposed_seconds(slow, false);
              with = exposed_seconds(slow, true);
              ratios.push_back(with / without);
            }
            std::printf("rank %d: exposed %.1f ms of %.1f ms\n", comm.rank(), with * 1e3, without * 1e3);
            std::sort(ratios.begin(), ratios.end());
            found.expect(ratios[1] <= 0.4,
                         "exposed is " + std::to_string(ratios[1]) + " of what it is without overlap");
          }) == "");
  }
}

}  // namespace
