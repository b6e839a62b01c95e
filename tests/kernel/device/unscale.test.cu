// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the code of a thread that unscales gradients on the host: the elements' bits, every place of an infinity or NaN,
// and the sum of squares.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/unscale.cuh>
#include <hocket/scalar/scalar.hpp>

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;

namespace {

template <class T>
device::gradient_tally run(const device::unscaling<T>& body, std::size_t count) {
  device::gradient_tally tally;
  for (std::size_t thread = 0; thread < 3; ++thread) {
    device::visit(
        body.parts(count), thread, 3, [&](std::size_t first) { body.on_group(first, tally); },
        [&](std::size_t i) { body.on_element(i, tally); });
  }
  return tally;
}

template <class T>
std::vector<T> unscaled(const std::vector<T>& values, hocket::accumulator_t<T> inverse) {
  std::vector<T> result;
  for (const T& value : values)
    result.push_back(static_cast<T>(inverse * static_cast<hocket::accumulator_t<T>>(value)));
  return result;
}

template <class T>
double squares_of(const std::vector<T>& values, hocket::accumulator_t<T> inverse) {
  long double sum = 0;
  for (const T& value : values) {
    const long double wide = inverse * static_cast<hocket::accumulator_t<T>>(value);
    sum += wide * wide;
  }
  return static_cast<double>(sum);
}

bool near(double a, double b) { return a == b || std::fabs(a - b) < 1e-12 * std::fabs(b); }

template <class T>
void check() {
  const auto inverse = static_cast<hocket::accumulator_t<T>>(0.3);
  bool bits = true;
  bool sums = true;
  for (std::size_t count : {0U, 1U, 5U, 16U, 33U, 64U, 150U}) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      for (bool in_place : {false, true}) {
        const auto values = samples<T>(0, count);
        guarded<T> from(values, (3 * offset) % 16);
        guarded<T> apart(count, offset);
        guarded<T>& to = in_place ? from : apart;
        const auto tally = run<T>({to.elements().data(), from.elements().data(), inverse}, count);
        const auto expected = unscaled(values, inverse);
        bits = bits && same_bytes<T>(to.elements(), expected) && from.intact() && apart.intact();
        sums = sums && near(tally.squares, squares_of(values, inverse)) && tally.not_finite == 0;
      }
    }
  }
  INFO(hocket::scalar_name<T>());
  CHECK(bits);
  CHECK(sums);
}

}  // namespace

TEST_CASE("unscaled elements have the bits of a plain loop, and the sum of their squares is right") {
  check<float>();
  check<double>();
  check<hocket::half>();
  check<hocket::bfloat16>();
  check<hocket::float8_e5m2>();
}

TEST_CASE("an infinity or NaN is found at any place, and so is a value that becomes infinite") {
  const std::size_t count = 40;
  for (std::size_t place = 0; place < count; ++place) {
    for (float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                      std::numeric_limits<float>::quiet_NaN()}) {
      auto values = samples<float>(0, count);
      values[place] = bad;
      std::vector<float> to(count);
      CHECK(run<float>({to.data(), values.data(), 0.5F}, count).not_finite == 1);
    }
    std::vector<hocket::half> values(count, hocket::half(1000));
    values[place] = hocket::half(60000);
    std::vector<hocket::half> to(count);
    CHECK(run<hocket::half>({to.data(), values.data(), 1.0F}, count).not_finite == 0);
    CHECK(run<hocket::half>({to.data(), values.data(), 2.0F}, count).not_finite == 1);
  }
  std::vector<float> largest(8, std::numeric_limits<float>::max());
  const auto tally = run<float>({largest.data(), largest.data(), 1.0F}, 8);
  CHECK(tally.not_finite == 0);
  CHECK(std::isfinite(tally.squares));
}

TEST_CASE("kernels unscale to the host's bits, and give the same sum in every run", "[gpu]") {
  if (gpu_is_missing()) return;
  const std::size_t count = 1000003;
  for (std::size_t offset : {0U, 1U, 5U}) {
    auto values = samples<hocket::bfloat16>(0, count);
    for (bool bad : {false, true}) {
      if (bad) values[count - 2] = std::numeric_limits<hocket::bfloat16>::infinity();
      device_vector<hocket::bfloat16> from(values, offset);
      device_vector<hocket::bfloat16> to(count, (3 * offset) % 8);
      device_vector<device::gradient_tally> scratch(device::unscale_scratch);
      device_vector<device::gradient_tally> result(2);
      cudaStream_t stream = nullptr;
      check_cuda(cudaStreamCreate(&stream));
      for (std::size_t run = 0; run < 2; ++run) {
        const auto cause = device::unscale(cuda::stream_ref(stream), to.data(), from.data(), 0.3F, count,
                                           scratch.data(), result.data() + run);
        CHECK_FALSE(static_cast<bool>(cause));
      }
      const auto tallies = result.values();
      CHECK(same_bytes<hocket::bfloat16>(to.values(), unscaled(values, 0.3F)));
      CHECK(tallies[0].not_finite == (bad ? 1 : 0));
      CHECK((bad || near(tallies[0].squares, squares_of(values, 0.3F))));
      CHECK((bad || tallies[0].squares == tallies[1].squares));
      check_cuda(cudaStreamDestroy(stream));
    }
  }
}
