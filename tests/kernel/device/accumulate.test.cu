// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Runs the code of threads that accumulate gradients on the host: it gives the bits of plain loops, for all alignments.
#include "kernel/device/gpu.cuh"
#include "support/catch.hpp"
#include "support/elements.hpp"

#include <hocket/kernel/device/accumulate.cuh>
#include <hocket/scalar/scalar.hpp>

#include <cstddef>
#include <span>
#include <vector>

using namespace hocket_test;
namespace device = hocket::kernel::device;

namespace {

template <class Sum, class From, class To>
struct expectation {
  std::vector<Sum> sums;
  std::vector<To> results;

  expectation(const std::vector<Sum>& before, const std::vector<From>& values, Sum scale, Sum cast_scale) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      volatile auto product = scale * static_cast<Sum>(values[i]);  // no fused operation on any host
      const auto sum = static_cast<Sum>(before[i] + product);
      sums.push_back(sum);
      results.push_back(static_cast<To>(cast_scale * sum));
    }
  }
};

template <class Body>
void run(const Body& body, const device::partition& parts) {
  for (std::size_t thread = 0; thread < 3; ++thread) {
    device::visit(
        parts, thread, 3, [&](std::size_t first) { body.on_group(first); }, [&](std::size_t i) { body.on_element(i); });
  }
}

template <class Sum, class From, class To>
bool accumulates(std::size_t count, std::size_t offset) {
  const auto before = samples<Sum>(0, count);
  const auto values = samples<From>(1, count);
  const Sum scale = static_cast<Sum>(0.37);
  const Sum cast_scale = static_cast<Sum>(1.9);
  const expectation<Sum, From, To> expected(before, values, scale, cast_scale);

  guarded<Sum> sum(before, offset);
  guarded<From> from(values, (3 * offset) % 16);
  guarded<To> to(count, (7 * offset) % 16);
  const device::accumulation_and_cast<Sum, From, To> both{
      {sum.elements().data(), from.elements().data(), scale}, to.elements().data(), cast_scale};
  run(both, both.parts(count));
  bool good = same_bytes<Sum>(sum.elements(), expected.sums) && same_bytes<To>(to.elements(), expected.results);

  guarded<Sum> alone(before, (offset + 1) % 16);
  const device::accumulation<Sum, From> addition{alone.elements().data(), from.elements().data(), scale};
  run(addition, addition.parts(count));
  good = good && same_bytes<Sum>(alone.elements(), expected.sums);
  return good && sum.intact() && from.intact() && to.intact() && alone.intact();
}

template <class Sum, class From, class To>
void check() {
  bool good = true;
  for (std::size_t count : {0U, 1U, 5U, 16U, 33U, 64U, 150U}) {
    for (std::size_t offset = 0; offset < 16; ++offset) {
      if (accumulates<Sum, From, To>(count, offset)) continue;
      good = false;
      UNSCOPED_INFO("count " << count << ", offset " << offset);
    }
  }
  INFO(hocket::scalar_name<Sum>() << " += " << hocket::scalar_name<From>() << ", cast to "
                                  << hocket::scalar_name<To>());
  CHECK(good);
}

template <class Sum, class From, class To>
void check_on_gpu(std::size_t count, std::size_t offset) {
  const auto before = samples<Sum>(0, count);
  const auto values = samples<From>(1, count);
  const Sum scale = static_cast<Sum>(0.37);
  const Sum cast_scale = static_cast<Sum>(1.9);
  const expectation<Sum, From, To> expected(before, values, scale, cast_scale);
  device_vector<Sum> sum(before, offset);
  device_vector<From> from(values, (3 * offset) % 16);
  device_vector<To> to(count, (7 * offset) % 16);
  cudaStream_t stream = nullptr;
  check_cuda(cudaStreamCreate(&stream));
  const auto cause =
      device::accumulate(cuda::stream_ref(stream), sum.data(), from.data(), scale, to.data(), cast_scale, count);
  CHECK(cause.message() == hocket::failure().message());
  CHECK(same_bytes<Sum>(sum.values(), expected.sums));
  CHECK(same_bytes<To>(to.values(), expected.results));
  const auto again = device::accumulate(cuda::stream_ref(stream), sum.data(), from.data(), scale, count);
  CHECK(again.message() == hocket::failure().message());
  CHECK(same_bytes<Sum>(sum.values(), expectation<Sum, From, To>(expected.sums, values, scale, cast_scale).sums));
  check_cuda(cudaStreamDestroy(stream));
}

}  // namespace

TEST_CASE("sum += scale * gradient, and its cast, give the bits of plain loops") {
  check<float, float, float>();
  check<float, hocket::bfloat16, hocket::bfloat16>();
  check<float, hocket::half, float>();
  check<float, hocket::float8_e5m2, hocket::half>();
  check<double, float, hocket::bfloat16>();
  check<hocket::bfloat16, hocket::bfloat16, hocket::bfloat16>();
  check<hocket::half, float, hocket::float8_e4m3>();
}

TEST_CASE("kernels accumulate to the host's bits", "[gpu]") {
  if (gpu_is_missing()) return;
  for (std::size_t offset : {0U, 1U, 6U}) {
    check_on_gpu<float, hocket::bfloat16, hocket::bfloat16>(100003, offset);
    check_on_gpu<float, float, hocket::half>(1000, offset);
  }
}
