// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// @file
/// The cost of an update of a metric, with one thread and with two threads on the same metric.
#include <hocket/observe/registry.hpp>

#include <benchmark/benchmark.h>

#include <cstddef>

namespace {

using namespace hocket::observe;

registry& metrics() {
  static registry all;
  return all;
}

void counter_add(benchmark::State& state) {
  counter& calls = metrics().counter("calls", "calls");
  for ([[maybe_unused]] auto _ : state) calls.add();
}

void gauge_set(benchmark::State& state) {
  gauge& loss = metrics().gauge("loss", "loss");
  double value = 0;
  for ([[maybe_unused]] auto _ : state) loss.set(value += 1);
}

void histogram_record(benchmark::State& state) {
  histogram& sizes = metrics().histogram("sizes", "sizes in bytes", exponential_bounds(1, 2, 19));  // 20 buckets
  // Values in an order that a branch predictor can't learn.
  double values[1024];
  unsigned random = 1;
  for (double& each : values)
    each = static_cast<double>(1U << ((random = random * 1664525U + 1013904223U) >> 27U) % 20U);
  std::size_t i = 0;
  for ([[maybe_unused]] auto _ : state) sizes.record(values[i++ % 1024]);
}

BENCHMARK(counter_add)->ThreadRange(1, 2);
BENCHMARK(gauge_set)->ThreadRange(1, 2);
BENCHMARK(histogram_record)->ThreadRange(1, 2);

}  // namespace

BENCHMARK_MAIN();
