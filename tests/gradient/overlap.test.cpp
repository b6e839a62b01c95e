// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The part of the communication that a backward pass hides, in virtual time.
#include <hocket/gradient/accumulator.hpp>
#include <hocket/sim.hpp>

#include "support/catch.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace {

/// Layers of equal size, one bucket each. Their computation takes about as long as their communication.
constexpr std::size_t layers = 24;
constexpr std::size_t layer_elements = 64 * 1024;
constexpr double layer_seconds = 1.2e-3;
constexpr hocket::plan::cost_model machine{.latency = 5e-6, .seconds_per_byte = 2e-9, .reduce_seconds_per_byte = 1e-10};

hocket::parameter_layout layout_of_layers() {
  std::vector<hocket::parameter> parameters;
  for (std::size_t i = 0; i < layers; ++i) parameters.push_back({"layer " + std::to_string(i), layer_elements});
  // Ranks that share a thread cannot wait for one of many buckets before the next one is computed.
  return hocket::parameter_layout(parameters, {.first_elements = 1, .elements = 1, .in_flight = layers});
}

/// Seconds of one step beyond the computation of its backward pass.
template <class When, class Sharding>
double exposed_seconds(int ranks, bool overlap, When when, Sharding sharding) {
  hocket::sim::world world(ranks, machine);
  using accumulator = decltype(hocket::gradients<float>(world.comm(0), layout_of_layers(), when, sharding));
  std::vector<std::unique_ptr<accumulator>> all;
  for (int rank = 0; rank < ranks; ++rank) {
    all.push_back(
        std::make_unique<accumulator>(hocket::gradients<float>(world.comm(rank), layout_of_layers(), when, sharding)));
  }
  for (int rank = 0; rank < ranks; ++rank) {
    accumulator& gradients = *all[static_cast<std::size_t>(rank)];
    gradients.begin_microbatch(0, 1);
    for (std::size_t i = layers; i-- > 0;) {
      world.spend(rank, layer_seconds);
      for (float& each : gradients.of(i)) each += 1;
      if (overlap) gradients.ready(i);
    }
    gradients.end_microbatch(0, 1);  // buckets that are not ready are sent now
  }
  world.run();
  return world.now() - layers * layer_seconds;
}

template <class When, class Sharding>
void check_overlap(When when, Sharding sharding) {
  for (const int ranks : {2, 4, 8}) {
    const double with = exposed_seconds(ranks, true, when, sharding);
    const double without = exposed_seconds(ranks, false, when, sharding);
    INFO(ranks << " ranks, stage " << Sharding::stage << ": exposed " << with * 1e3 << " ms of " << without * 1e3
               << " ms");
    CHECK(with > 0);  // no computation overlaps with the last bucket
    CHECK(with <= 0.4 * without);
  }
}

TEST_CASE("a backward pass hides at least 60 % of its communication") {
  check_overlap(hocket::last_microbatch, hocket::zero<0>);
  check_overlap(hocket::last_microbatch, hocket::zero<1>);
  check_overlap(hocket::every_microbatch, hocket::zero<2>);
}

}  // namespace
